// SPDX-License-Identifier: BSD-3-Clause
//
// Whether this process can have a shared heap, and how large and how fast it would be.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/env.h"
#include "os/process.h"
#include "os/shared_memory.h"
#include "tools/doctor_checks.h"
#include "tools/heap_size.h"
#include "tools/launch.h"
#include "tools/program_file.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

constexpr std::uint64_t kLeastHeapBytes = 4u << 20;  // heap/segment.cc makes none that is smaller

std::string limit_in_words(int resource) {
    rlimit limit{};
    if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return "unlimited";
    return in_words(limit.rlim_cur);
}

bool is_limited(int resource) { return limit_in_words(resource) != "unlimited"; }

// Makes, fills and empties an object of the size of a heap, as a rank does. Returns: 0 or the errno of what failed.
int try_object(int fd, std::uint64_t bytes) {
    if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) return errno;
    void* mapped =
        mmap(nullptr, os::kHugePageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (mapped == MAP_FAILED) return errno;
    auto* base = static_cast<std::byte*>(mapped);
    *base = std::byte{1};
    const bool gives_back = os::punch_hole(base, os::kHugePageBytes) && *base == std::byte{0};
    const int error = gives_back ? 0 : errno != 0 ? errno : EINVAL;
    munmap(base, os::kHugePageBytes);
    return error;
}

std::string remedy_of_filter(const std::string& call) {
    return has_call_filter() ? "let the container's system call filter (seccomp) pass " + call
                             : "use a kernel that has " + call;
}

void check_mount(const std::string& why, Findings& findings) {
    struct statvfs mount {};
    const bool is_there = statvfs("/dev/shm", &mount) == 0;
    const std::uint64_t bytes =
        is_there ? mount_heap_bytes(mount.f_blocks * mount.f_frsize, mount.f_bavail * mount.f_frsize) : 0;
    const bool can_write = access("/dev/shm", W_OK | X_OK) == 0;
    if (!can_write || bytes < kLeastHeapBytes)
        findings.problem(
            "shared memory",
            why + ", and /dev/shm has " + (can_write ? in_words(bytes) : std::string("no room")) +
                " for the heap of a rank",
            remedy_of_filter("memfd_create") + ", or make /dev/shm larger (docker --shm-size=8g)");
    else
        findings.note("shared memory",
                      why + ": the heap of a rank lies in /dev/shm, with " + in_words(bytes) + " at most",
                      remedy_of_filter("memfd_create") + ", or make /dev/shm larger (docker --shm-size=8g)");
}

}  // namespace

void check_shared_memory(Findings& findings) {
    const std::uint64_t bytes = heap_bytes();
    const int fd = memfd_create("coco-doctor", MFD_CLOEXEC);
    if (fd < 0) return check_mount(std::string("memfd_create fails: ") + std::strerror(errno), findings);
    const int error = bytes >= kLeastHeapBytes ? try_object(fd, bytes) : 0;
    close(fd);
    if (error != 0)
        return findings.problem(
            "shared memory",
            "a heap of " + in_words(bytes) + " cannot be mapped and given back: " + std::strerror(error),
            "set a smaller COCO_HEAP_LIMIT; emulators and some sandboxes cannot do it at all");
    struct statvfs mount {};
    const bool has_mount = statvfs("/dev/shm", &mount) == 0;
    findings.ok("shared memory", "memfd works, also with " + in_words(bytes) +
                                     (has_mount ? "; /dev/shm, for the MPI library's own, has " +
                                                      in_words(mount.f_blocks * mount.f_frsize)
                                                : ""));
}

namespace {

void check_locked(const std::string& program, Findings& findings) {
    if (!is_limited(RLIMIT_MEMLOCK)) return;
    const std::string limit = limit_in_words(RLIMIT_MEMLOCK);
    std::string why;
    const std::string file = program.empty() ? program : find_program(program);
    const std::string binary = file.empty() ? file : find_binary(file, &why);
    if (!binary.empty() && !names_in(binary, {"mlockall"}).wanted.empty())
        findings.note("limits",
                      binary + " calls mlockall, which fails where locked memory is limited to " + limit +
                          ", as it counts the whole heap",
                      "ulimit -l unlimited");
    else if (std::filesystem::exists("/sys/class/infiniband"))
        findings.note("limits",
                      "this host has a network that locks memory, and locked memory is limited to " + limit,
                      "ulimit -l unlimited");
}

void check_heap_limits(Findings& findings) {
    std::vector<std::string> limits;
    if (is_limited(RLIMIT_AS))
        limits.push_back("address space to " + limit_in_words(RLIMIT_AS) + " (ulimit -v)");
    if (is_limited(RLIMIT_FSIZE))
        limits.push_back("files to " + limit_in_words(RLIMIT_FSIZE) + " (ulimit -f)");
    if (limits.empty()) return;
    const std::uint64_t bytes = heap_bytes();
    const std::string what =
        "the system limits " + joined(limits, " and ") + ": the heap of a rank has " + in_words(bytes);
    findings.add("limits", bytes < kLeastHeapBytes ? Level::problem : Level::note,
                 what + (bytes < kLeastHeapBytes ? ", which is too little" : " at most"),
                 "ulimit -v unlimited; ulimit -f unlimited");
}

}  // namespace

void check_limits(const std::string& program, Findings& findings) {
    constexpr rlim_t kFewFiles = 256;
    const std::size_t before = findings.all().size();
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < kFewFiles)
        findings.note("limits",
                      "a process may open " + std::to_string(files.rlim_cur) +
                          " files, which libcoco shares with the MPI library and the program",
                      "ulimit -n 1024");
    check_heap_limits(findings);
    check_locked(program, findings);
    if (findings.all().size() == before)
        findings.ok("limits", "open files " + std::to_string(files.rlim_cur) + ", locked memory " +
                                  limit_in_words(RLIMIT_MEMLOCK) + ", address space and file size unlimited");
}

void check_huge_pages(Findings& findings) {
    const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
    const std::string enabled = choice_in_force(folder + "enabled"),
                      shared = choice_in_force(folder + "shmem_enabled");
    if (enabled.empty())
        return findings.note("huge pages", "this kernel has none",
                             "use a kernel with CONFIG_TRANSPARENT_HUGEPAGE");
    if (enabled == "never" || shared == "deny")
        return findings.note(
            "huge pages",
            "the system gives none (" +
                std::string(enabled == "never" ? "enabled is never" : "shmem_enabled is deny") +
                "): programs that use much memory are slower, and buffers of more than 256 KiB "
                "are private and read through the kernel",
            "as root: echo madvise > " + folder + "enabled; echo never > " + folder + "shmem_enabled");
    findings.ok("huge pages", enabled + ", and in shared memory " + shared);
}

}  // namespace coco::tools
