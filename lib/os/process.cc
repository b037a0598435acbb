// SPDX-License-Identifier: BSD-3-Clause
#include "os/process.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <valgrind/valgrind.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/env.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/kept_errno.h"
#include "base/kernel.h"
#include "os/clock.h"
#include "os/symbols.h"

namespace coco::os {
namespace {

void add_file(base::Hash& hash, const char* path) {
    char text[128];
    const int fd = kernel::open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? kernel::read(fd, text, sizeof text) : 0;
    if (fd >= 0) kernel::close(fd);
    hash.add(std::string_view(text, base::index(n > 0 ? n : 0)));
}

void add_link(base::Hash& hash, const char* path) {
    char text[128];
    const ssize_t n = kernel::readlink(path, text, sizeof text);
    hash.add(std::string_view(text, base::index(n > 0 ? n : 0)));
}

// libmpi.so.40, libmpich.so.12, libmpi_cxx.so.40, ...
bool is_mpi_library(const dl_phdr_info& object) {
    const char* slash = std::strrchr(object.dlpi_name, '/');
    std::string_view name(slash ? slash + 1 : object.dlpi_name);
    return name.starts_with("libmpi.") || name.starts_with("libmpi_") || name.starts_with("libmpich");
}

constexpr const char* kRankProcess = "COCO_RANK_PROCESS";

// The launcher's variables that tell ranks and jobs apart: a job that a rank starts has others.
std::uint64_t launch_hash() {
    base::Hash hash;
    for (const char* name :
         {"PMI_RANK", "PMI_ID", "PMI_FD", "PMI_PORT", "PMIX_RANK", "PMIX_NAMESPACE", "PMIX_ID",
          "OMPI_COMM_WORLD_RANK", "SLURM_JOBID", "SLURM_STEPID", "PALS_RANKID", "PALS_APID"})
        hash.add(base::env(name));
    return hash.value();
}

// A rank that replaces its own program stays a rank.
bool is_child_of_rank() {
    const std::string_view note = base::env(kRankProcess);
    const std::size_t colon = note.find(':');
    std::uint64_t rank_process = 0, hash = 0;
    return colon != note.npos && base::parse_number(note.substr(0, colon), rank_process) &&
           base::parse_number(note.substr(colon + 1), hash) &&
           rank_process != static_cast<std::uint64_t>(kernel::getpid()) && hash == launch_hash();
}

std::uint64_t number_of(const char* name) {
    std::uint64_t number = 0;
    return base::parse_number(base::env(name), number) ? number : 0;
}

// Tasks on this node: of the step, else of the whole allocation.
std::uint64_t slurm_tasks() {
    for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"})
        if (std::uint64_t tasks = tasks_of_node(base::env(name), number_of("SLURM_NODEID"))) return tasks;
    return number_of("SLURM_NTASKS_PER_NODE");
}

std::uint64_t flux_tasks() {
    std::uint64_t nodes = number_of("FLUX_JOB_NNODES");
    return nodes != 0 ? (number_of("FLUX_JOB_SIZE") + nodes - 1) / nodes : 0;
}

}  // namespace

std::uint64_t tasks_of_node(std::string_view list, std::uint64_t node) {
    while (!list.empty()) {
        std::string_view item = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), item.size() + 1));
        std::uint64_t tasks = 0, nodes = 1;
        auto bracket = item.find("(x");
        if (!base::parse_number(item.substr(0, bracket), tasks)) return 0;
        if (bracket != item.npos) {
            std::string_view times = item.substr(bracket + 2);
            if (!times.ends_with(')') || !base::parse_number(times.substr(0, times.size() - 1), nodes))
                return 0;
        }
        if (node < nodes) return tasks;
        node -= nodes;
    }
    return 0;
}

std::uint64_t launched_ranks() {
    for (const char* name : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "FLUX_JOB_SIZE",
                             "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"})
        if (std::uint64_t ranks = number_of(name)) return ranks;
    return 0;
}

std::uint64_t launched_node_ranks() {
    for (const char* name :
         {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "PALS_LOCAL_SIZE"})
        if (std::uint64_t ranks = number_of(name)) return ranks;
    std::uint64_t tasks = slurm_tasks();
    return tasks != 0 ? tasks : flux_tasks();
}

std::uint64_t node_ranks() {
    std::uint64_t ranks = launched_node_ranks();
    return ranks != 0 ? ranks : online_cpus();
}

std::uint64_t count_cpus(std::string_view list) {
    std::uint64_t cpus = 0;
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t comma = std::min(list.find(',', at), list.size());
        const std::string_view range = list.substr(at, comma - at);
        const std::size_t dash = std::min(range.find('-'), range.size());
        std::uint64_t first = 0, last = 0;
        if (!base::parse_number(range.substr(0, dash), first)) return 0;
        if (dash == range.size())
            last = first;
        else if (!base::parse_number(range.substr(dash + 1), last) || last < first)
            return 0;
        cpus += last - first + 1;
        at = comma + 1;
    }
    return cpus;
}

std::uint64_t online_cpus() {
    static constinit std::atomic<std::uint64_t> found{0};  // relaxed: nothing else goes with it
    if (const std::uint64_t known = found.load(std::memory_order_relaxed)) return known;
    char text[256];
    const int fd = kernel::open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = fd >= 0 ? kernel::read(fd, text, sizeof text) : 0;
    if (fd >= 0) kernel::close(fd);
    const std::string_view list(text, base::index(std::max<ssize_t>(bytes, 0)));
    std::uint64_t mask[128] = {};  // for 8192 CPUs, Linux' own limit
    std::uint64_t cpus = count_cpus(list.substr(0, list.find('\n')));
    if (cpus == 0 && kernel::sched_getaffinity(sizeof mask, mask) > 0)
        for (const std::uint64_t word : mask) cpus += static_cast<std::uint64_t>(std::popcount(word));
    found.store(std::max<std::uint64_t>(cpus, 1), std::memory_order_relaxed);
    return std::max<std::uint64_t>(cpus, 1);
}

std::uint64_t host_identity() {
    base::Hash hash;
    if (const auto name = base::env("COCO_TEST_HOST"); !name.empty()) {
        hash.add(name);
        return hash.value();
    }
    const base::KeptErrno kept;
    add_file(hash, "/proc/sys/kernel/random/boot_id");
    add_link(hash, "/proc/self/ns/pid");
    add_link(hash, "/proc/self/ns/user");
    return hash.value();
}

std::uint64_t random_cookie() {
    std::uint64_t cookie = 0;
    const base::KeptErrno kept;
    if (kernel::getrandom(&cookie, sizeof cookie, GRND_NONBLOCK) != sizeof cookie)
        cookie = now_ns() * 0x9e3779b97f4a7c15u ^ static_cast<std::uint64_t>(kernel::getpid());
    return cookie != 0 ? cookie : 1;
}

std::int32_t own_thread() { return static_cast<std::int32_t>(kernel::call(SYS_gettid)); }

std::int64_t launched_rank() {
    for (const char* name : {"PMIX_RANK", "PMI_RANK", "PMI_ID", "OMPI_COMM_WORLD_RANK", "PALS_RANKID",
                             "FLUX_TASK_RANK", "SLURM_PROCID"})
        if (std::uint64_t rank = 0; base::parse_number(base::env(name), rank))
            return static_cast<std::int64_t>(rank);
    return -1;
}

bool is_mpi_rank() {
    if (any_object(is_mpi_library)) return true;
    if (is_child_of_rank()) return false;
    for (const char* name :
         {"PMI_RANK", "PMI_ID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID", "PALS_RANKID"})
        if (!base::env(name).empty()) return true;
    return false;
}

void mark_children() {
    const std::string note = std::to_string(getpid()) + ":" + std::to_string(launch_hash());
    setenv(kRankProcess, note.c_str(), 1);
}
bool is_under_valgrind() { return RUNNING_ON_VALGRIND != 0; }

}  // namespace coco::os
