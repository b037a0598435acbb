// SPDX-License-Identifier: BSD-3-Clause
//
// What this host is, and what a container or a control group leaves of it.
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/env.h"
#include "os/cpu.h"
#include "os/numa.h"
#include "os/probe.h"
#include "os/process.h"
#include "tools/doctor_checks.h"
#include "tools/words.h"

namespace coco::tools {
namespace fs = std::filesystem;
namespace {

struct Release {
    int major = 0, minor = 0;
    auto operator<=>(const Release&) const = default;
};

Release release_of(const std::string& text) {
    Release release;
    char dot = 0;
    std::istringstream(text) >> release.major >> dot >> release.minor;
    return release;
}

}  // namespace

void check_kernel(Findings& findings) {
    const std::string name = kernel_name();
    const Release release = release_of(name.substr(name.find(' ') + 1));
    constexpr Release kMakesHugePages{6, 1};
    if (!(release < kMakesHugePages)) return findings.ok("kernel", name);
    findings.note(
        "kernel",
        name +
            ", which is older than 6.1 and makes no huge pages of shared memory: buffers of more than "
            "256 KiB are private and read through the kernel",
        "nothing, or use Linux 6.1 or later");
}

void check_cpus(Findings& findings) {
    const os::Cpus cpus = os::usable_cpus();
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const std::string quota =
        cpus.quota != 0 ? "; the control group grants the time of " + std::to_string(cpus.quota) : "";
    findings.ok("CPUs",
                std::to_string(cpus.count()) + " of " + std::to_string(online) + " for this process" + quota);
}

namespace {

// The domains in which CPUs of the set are.
std::vector<std::int64_t> domains_of(const os::Cpus& cpus,
                                     const std::map<std::int64_t, std::vector<std::int64_t>>& domains) {
    std::vector<std::int64_t> found;
    for (const auto& [domain, members] : domains)
        if (std::ranges::any_of(members, [&](std::int64_t cpu) {
                return cpu < os::Cpus::kMost && (cpus.mask[cpu / 64] >> (cpu % 64) & 1) != 0;
            }))
            found.push_back(domain);
    return found;
}

bool can_choose_domain() {
    const std::uint64_t bytes = os::page_bytes();
    void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    const bool can = os::prefer_here(page, bytes);
    munmap(page, bytes);
    return can;
}

}  // namespace

void check_domains(Findings& findings) {
    const std::map<std::int64_t, std::vector<std::int64_t>> domains = cpus_of_domains();
    const std::size_t all = domains.size();
    const std::vector<std::int64_t> mine = domains_of(os::usable_cpus(), domains);
    if (all <= 1) return findings.ok("NUMA", "one domain");
    const std::string of = " of " + std::to_string(all) + " domains";
    if (!can_choose_domain())
        findings.note(
            "NUMA", "memory's domain cannot be chosen here (mbind)",
            "let the container's system call filter (seccomp) pass mbind (docker --cap-add=SYS_NICE)");
    if (mine.size() > 1 && os::launched_rank() >= 0)
        findings.note(
            "NUMA",
            "a rank may run on CPUs" + (" in " + std::to_string(mine.size())) + of +
                ": its memory may be far from it",
            "bind ranks: mpiexec --bind-to core (Open MPI), -bind-to core (MPICH), srun --cpu-bind=cores");
    else
        findings.ok("NUMA", "CPUs in domain " + numbers(mine) + of);
}

void check_memory_of_group(Findings& findings) {
    constexpr std::uint64_t kTightBytes = std::uint64_t{1}
                                          << 30;  // four times what a rank may keep of freed blocks
    struct sysinfo memory {};
    sysinfo(&memory);
    const std::uint64_t bytes = memory.totalram * memory.mem_unit, granted = os::granted_memory_bytes();
    if (granted >= bytes) return findings.ok("memory", in_words(bytes));
    const std::string what = in_words(bytes) + ", of which the control group grants " + in_words(granted);
    if (granted / os::node_ranks() >= kTightBytes) return findings.ok("memory", what);
    findings.note("memory", what + ": freed blocks that libcoco keeps for some seconds count against it",
                  "grant more memory, or COCO_HEAP=off");
}

bool has_call_filter() {
    std::ifstream in("/proc/self/status");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("Seccomp:")) return line.find_first_of("12") != std::string::npos;
    return false;
}

namespace {

// The numbers of the namespaces that the kernel itself makes (include/linux/proc_ns.h).
const std::map<std::string, std::string>& first_namespaces() {
    static const std::map<std::string, std::string> names = {
        {"ipc", "ipc:[4026531839]"}, {"user", "user:[4026531837]"}, {"pid", "pid:[4026531836]"}};
    return names;
}

std::string container_name() {
    if (std::getenv("APPTAINER_CONTAINER") != nullptr) return "Apptainer";
    if (std::getenv("SINGULARITY_CONTAINER") != nullptr) return "Singularity";
    if (fs::exists("/.dockerenv")) return "Docker";
    return fs::exists("/run/.containerenv") ? "Podman" : "";
}

}  // namespace

void check_container(Findings& findings) {
    std::vector<std::string> own;
    for (const auto& [kind, first] : first_namespaces()) {
        std::error_code error;
        const std::string link = fs::read_symlink("/proc/self/ns/" + kind, error);
        if (!error && link != first) own.push_back(kind);
    }
    const std::string name = container_name();
    std::string what = name.empty() ? "no container" : "a container of " + name;
    if (!own.empty())
        what += ", namespaces of its own (" + joined(own) + "), which must be one for all ranks of a host";
    if (has_call_filter()) what += ", a filter of system calls (seccomp)";
    findings.ok("container", what);
}

}  // namespace coco::tools
