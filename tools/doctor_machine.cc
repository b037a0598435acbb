// SPDX-License-Identifier: BSD-3-Clause
//
// What this host is, and what a container or a control group leaves of it.
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "os/cpu.h"
#include "os/numa.h"
#include "os/probe.h"
#include "os/process.h"
#include "tools/doctor_check.h"
#include "tools/words.h"

namespace coco::tools {
namespace fs = std::filesystem;
namespace {

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
    struct sysinfo memory {};
    sysinfo(&memory);
    const std::uint64_t bytes = memory.totalram * memory.mem_unit, granted = os::granted_memory_bytes();
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
    {"kernel", ask_kernel}, {"CPUs", ask_cpus},           {"NUMA", ask_domains},
    {"memory", ask_memory}, {"container", ask_container},
};

}  // namespace

OwnChecks machine_checks() { return kMachineChecks; }

}  // namespace coco::tools
