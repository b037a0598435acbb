// SPDX-License-Identifier: BSD-3-Clause
#include "os/process.h"

#include <fcntl.h>
#include <link.h>
#include <sys/random.h>
#include <unistd.h>
#include <valgrind/valgrind.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/env.h"
#include "os/clock.h"

namespace coco::os {
namespace {

// FNV-1a.
std::uint64_t mix(std::uint64_t hash, std::string_view text) {
    for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

std::uint64_t mix_file(std::uint64_t hash, const char* path) {
    char text[128];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;
    if (fd >= 0) close(fd);
    return mix(hash, {text, static_cast<std::size_t>(n > 0 ? n : 0)});
}

std::uint64_t mix_link(std::uint64_t hash, const char* path) {
    char text[128];
    ssize_t n = readlink(path, text, sizeof text);
    return mix(hash, {text, static_cast<std::size_t>(n > 0 ? n : 0)});
}

// libmpi.so.40, libmpich.so.12, libmpi_cxx.so.40, ...
int find_mpi_library(dl_phdr_info* info, std::size_t, void* found) {
    const char* slash = std::strrchr(info->dlpi_name, '/');
    std::string_view name(slash ? slash + 1 : info->dlpi_name);
    if (!name.starts_with("libmpi.") && !name.starts_with("libmpi_") && !name.starts_with("libmpich"))
        return 0;
    *static_cast<bool*>(found) = true;
    return 1;
}

constexpr const char* kRankProcess = "COCO_RANK_PROCESS";

// A rank that replaces its own program stays a rank.
bool is_child_of_rank() {
    std::uint64_t rank_process = 0;
    return base::parse_number(base::env(kRankProcess), rank_process) &&
           rank_process != static_cast<std::uint64_t>(getpid());
}

}  // namespace

std::uint64_t host_identity() {
    int saved = errno;
    std::uint64_t hash = mix_file(0xcbf29ce484222325u, "/proc/sys/kernel/random/boot_id");
    hash = mix_link(hash, "/proc/self/ns/pid");
    hash = mix_link(hash, "/proc/self/ns/user");
    errno = saved;
    return hash;
}

std::uint64_t random_cookie() {
    std::uint64_t cookie = 0;
    int saved = errno;
    if (getrandom(&cookie, sizeof cookie, GRND_NONBLOCK) != sizeof cookie)
        cookie = now_ns() * 0x9e3779b97f4a7c15u ^ static_cast<std::uint64_t>(getpid());
    errno = saved;
    return cookie != 0 ? cookie : 1;
}

bool is_mpi_rank() {
    bool found = false;
    dl_iterate_phdr(find_mpi_library, &found);
    if (found) return true;
    if (is_child_of_rank()) return false;
    for (const char* name :
         {"PMI_RANK", "PMI_ID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID", "PALS_RANKID"})
        if (!base::env(name).empty()) return true;
    return false;
}

void mark_children() { setenv(kRankProcess, std::to_string(getpid()).c_str(), 1); }
bool is_under_valgrind() { return RUNNING_ON_VALGRIND != 0; }

}  // namespace coco::os
