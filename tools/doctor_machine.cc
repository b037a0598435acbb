// SPDX-License-Identifier: BSD-3-Clause
//
// What this host gives to a process: memory for a shared heap, CPUs, and what limits and a container leave of
// them.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <tuple>

#include "heap/process_facts.h"
#include "heap/segment_size.h"
#include "os/cpu.h"
#include "os/numa.h"
#include "os/probe.h"
#include "os/process.h"
#include "os/shared_memory.h"
#include "tools/doctor_check.h"
#include "tools/program_file.h"
#include "tools/words.h"

namespace coco::tools {
namespace fs = std::filesystem;
namespace {

// Makes, fills and empties an object of the size of a heap, as a rank does. Returns: 0, or errno of what
// failed.
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

// Without memfd the heap lies in /dev/shm.
Answers answers_of_mount(const std::string& why_no_memfd) {
    struct statvfs mount {};
    const bool is_there = statvfs("/dev/shm", &mount) == 0, can_write = access("/dev/shm", W_OK | X_OK) == 0;
    const std::uint64_t all = mount.f_blocks * mount.f_frsize, free = mount.f_bavail * mount.f_frsize;
    const std::uint64_t bytes = is_there ? heap::mount_share_bytes(all, free, os::node_ranks()) : 0;
    const std::string why = "memfd_create fails: " + why_no_memfd;
    const std::string advice =
        std::string(has_call_filter() ? "let the container's system call filter (seccomp) pass memfd_create"
                                      : "use a kernel that has memfd_create") +
        ", or make /dev/shm larger (docker --shm-size=8g)";
    if (!can_write || bytes < heap::kLeastSegmentBytes)
        return problem({why, can_write ? in_words(bytes) : "no room", advice},
                       "{}, and /dev/shm has {} for the heap of a rank -> {}");
    return note({why, in_words(bytes), advice},
                "{}: the heap of a rank lies in /dev/shm, with {} at most -> {}");
}

Answers ask_shared_memory(Patient&) {
    const std::uint64_t bytes = heap::wanted_heap_bytes();
    const int fd = memfd_create("coco-doctor", MFD_CLOEXEC);
    if (fd < 0) return answers_of_mount(std::strerror(errno));
    const int error = bytes >= heap::kLeastSegmentBytes ? try_object(fd, bytes) : 0;
    close(fd);
    if (error != 0)
        return problem({in_words(bytes), std::strerror(error)},
                       "a heap of {} cannot be mapped and given back: {} -> set a smaller COCO_HEAP_LIMIT; "
                       "emulators and some sandboxes cannot do it at all");
    const std::string what = "memfd works, also with " + in_words(bytes);
    struct statvfs mount {};
    if (statvfs("/dev/shm", &mount) != 0) return ok(what);
    return ok({what, in_words(mount.f_blocks * mount.f_frsize)},
              "{}; /dev/shm, for the MPI library's own, has {}");
}

// Empty: there is none.
std::string limit_in_words(int resource) {
    const std::uint64_t limit = heap::limit_of(resource);
    return limit != UINT64_MAX ? in_words(limit) : "";
}

Answers answers_of_locked(const std::string& binary) {
    const std::string limit = limit_in_words(RLIMIT_MEMLOCK), advice = "ulimit -l unlimited";
    if (limit.empty()) return {};
    if (!binary.empty() && !names_in(binary, {"mlockall"}).wanted.empty())
        return note({binary, limit, advice},
                    "{} calls mlockall, which fails where locked memory is limited to {}, as it counts the "
                    "whole heap -> {}");
    if (!fs::exists("/sys/class/infiniband")) return {};
    return note({limit, advice},
                "this host has a network that locks memory, and locked memory is limited to {} -> {}");
}

Answers answers_of_heap_limits() {
    std::vector<std::string> limits;
    if (const std::string limit = limit_in_words(RLIMIT_AS); !limit.empty())
        limits.push_back(filled({limit}, "address space to {} (ulimit -v)"));
    if (const std::string limit = limit_in_words(RLIMIT_FSIZE); !limit.empty())
        limits.push_back(filled({limit}, "files to {} (ulimit -f)"));
    if (limits.empty()) return {};
    const std::uint64_t bytes = heap::wanted_heap_bytes();
    const std::string what =
        filled({joined(limits, " and "), in_words(bytes)}, "the system limits {}: the heap of a rank has {}");
    const std::string advice = "ulimit -v unlimited; ulimit -f unlimited";
    return bytes < heap::kLeastSegmentBytes ? problem({what, advice}, "{}, which is too little -> {}")
                                            : note({what, advice}, "{} at most -> {}");
}

Answers ask_limits(Patient& patient) {
    constexpr std::uint64_t kFewFiles = 256;
    const std::uint64_t files = heap::limit_of(RLIMIT_NOFILE);
    Answers answers;
    if (files < kFewFiles)
        answers = note({files},
                       "a process may open {} files, which libcoco shares with the MPI library and the "
                       "program -> ulimit -n 1024");
    answers += answers_of_heap_limits();
    answers += answers_of_locked(patient.binary);
    if (!answers.empty()) return answers;
    const std::string locked = limit_in_words(RLIMIT_MEMLOCK);
    return ok({files, locked.empty() ? "unlimited" : locked},
              "open files {}, locked memory {}, address space and file size unlimited");
}

Answers ask_huge_pages(Patient&) {
    const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
    const std::string enabled = choice_in_force(folder + "enabled"),
                      shared = choice_in_force(folder + "shmem_enabled");
    if (enabled.empty()) return note("this kernel has none -> use a kernel with CONFIG_TRANSPARENT_HUGEPAGE");
    if (enabled != "never" && shared != "deny") return ok({enabled, shared}, "{}, and in shared memory {}");
    return note({enabled == "never" ? "enabled is never" : "shmem_enabled is deny", folder, folder},
                "the system gives none ({}): programs that use much memory are slower, and buffers of more "
                "than 256 KiB are private and read through the kernel -> as root: echo madvise > {}enabled; "
                "echo never > {}shmem_enabled");
}

Answers ask_kernel(Patient&) {
    const std::string name = kernel_name();
    int major = 0, minor = 0;
    std::sscanf(name.c_str(), "%*s %d.%d", &major, &minor);
    if (std::tie(major, minor) >= std::tuple(6, 1)) return ok(name);
    return note({name},
                "{}, which is older than 6.1 and makes no huge pages of shared memory: buffers of more than "
                "256 KiB are private and read through the kernel -> nothing, or use Linux 6.1 or later");
}

Answers ask_cpus(Patient&) {
    const os::Cpus cpus = os::usable_cpus();
    const std::string quota =
        cpus.quota != 0 ? filled({cpus.quota}, "; the control group grants the time of {}") : "";
    return ok({cpus.count(), sysconf(_SC_NPROCESSORS_ONLN), quota}, "{} of {} for this process{}");
}

bool can_choose_domain() {
    const std::uint64_t bytes = os::page_bytes();
    void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    const bool can = os::prefer_here(page, bytes);
    munmap(page, bytes);
    return can;
}

Answers ask_domains(Patient&) {
    const std::map<std::int64_t, std::vector<std::int64_t>> domains = cpus_of_domains();
    if (domains.size() <= 1) return ok("one domain");
    std::vector<std::int64_t> mine;
    for (const std::vector<std::int64_t> usable = own_cpus(); const auto& [domain, cpus] : domains)
        if (std::ranges::find_first_of(usable, cpus) != usable.end()) mine.push_back(domain);
    Answers answers;
    if (!can_choose_domain())
        answers = note(
            "memory's domain cannot be chosen here (mbind) -> let the container's system call filter "
            "(seccomp) pass mbind (docker --cap-add=SYS_NICE)");
    answers +=
        mine.size() > 1 && os::launched_rank() >= 0
            ? note({mine.size(), domains.size()},
                   "a rank may run on CPUs in {} of {} domains: its memory may be far from it -> bind ranks: "
                   "mpiexec --bind-to core (Open MPI), -bind-to core (MPICH), srun --cpu-bind=cores")
            : ok({numbers(mine), domains.size()}, "CPUs in domain {} of {} domains");
    return answers;
}

Answers ask_memory(Patient&) {
    constexpr std::uint64_t kTightBytes = 1u << 30;  // four times what a rank may keep of freed blocks
    const std::uint64_t bytes = heap::node_memory_bytes(), granted = os::granted_memory_bytes();
    if (granted >= bytes) return ok(in_words(bytes));
    const std::string what =
        filled({in_words(bytes), in_words(granted)}, "{}, of which the control group grants {}");
    if (granted / os::node_ranks() >= kTightBytes) return ok(what);
    return note({what},
                "{}: freed blocks that libcoco keeps for some seconds count against it -> grant more memory, "
                "or COCO_HEAP=off");
}

std::string container_name() {
    if (std::getenv("APPTAINER_CONTAINER") != nullptr) return "Apptainer";
    if (std::getenv("SINGULARITY_CONTAINER") != nullptr) return "Singularity";
    if (fs::exists("/.dockerenv")) return "Docker";
    return fs::exists("/run/.containerenv") ? "Podman" : "";
}

Answers ask_container(Patient&) {
    // The numbers of the namespaces that the kernel itself makes (include/linux/proc_ns.h).
    constexpr std::pair<const char*, const char*> kFirst[] = {
        {"ipc", "ipc:[4026531839]"}, {"pid", "pid:[4026531836]"}, {"user", "user:[4026531837]"}};
    std::vector<std::string> own;
    for (const auto& [kind, first] : kFirst)
        if (const std::string name = own_namespace(kind); !name.empty() && name != first) own.push_back(kind);
    const std::string name = container_name();
    std::string what = name.empty() ? "no container" : "a container of " + name;
    if (!own.empty())
        what +=
            filled({joined(own)}, ", namespaces of its own ({}), which must be one for all ranks of a host");
    if (has_call_filter()) what += ", a filter of system calls (seccomp)";
    return ok(what);
}

constexpr OwnCheck kMachineChecks[] = {
    {"shared memory", ask_shared_memory},
    {"limits", ask_limits},
    {"huge pages", ask_huge_pages},
    {"kernel", ask_kernel},
    {"CPUs", ask_cpus},
    {"NUMA", ask_domains},
    {"memory", ask_memory},
    {"container", ask_container},
};

}  // namespace

OwnChecks machine_checks() { return kMachineChecks; }

}  // namespace coco::tools
