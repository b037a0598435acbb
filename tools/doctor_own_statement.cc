// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/env.h"
#include "os/probe.h"
#include "policy/learned.h"
#include "settings/settings.h"
#include "tools/doctor_statement.h"
#include "tools/launch.h"

namespace coco::tools {

namespace {

std::string hash_of_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
    for (std::istreambuf_iterator<char> at(in), end; at != end; ++at)
        hash = (hash ^ static_cast<unsigned char>(*at)) * 0x100000001B3u;
    constexpr int kDigits = 17;
    char text[kDigits];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    return text;
}

std::map<std::string, std::string> own_namespaces() {
    std::map<std::string, std::string> found;
    for (const char* kind : {"pid", "user", "ipc", "net"}) {
        std::error_code error;
        const std::string link = std::filesystem::read_symlink(std::string("/proc/self/ns/") + kind, error);
        if (!error) found[kind] = link;
    }
    return found;
}

std::map<std::string, std::string> common_settings() {
    std::map<std::string, std::string> found;
    for (const base::Setting& setting : base::settings())
        if (const std::string value(base::env(setting.name));
            !value.empty() && !settings::is_own_affair(setting.name))
            found[setting.name] = value;
    settings::Settings settings;
    if (!base::env("COCO_POLICY").empty() && !settings::is_switched_off() && !settings::read(settings))
        found["the rules of COCO_POLICY"] = policy::hash_of(settings.policy.rules);
    return found;
}

}  // namespace

Statement own_statement(const Offer& offer, const std::string& mpi_version, const Findings& findings) {
    Statement statement{.rank = offer.rank,
                        .host = {},
                        .namespaces = own_namespaces(),
                        .user = static_cast<std::int64_t>(getuid()),
                        .cpus = {},
                        .libcoco = {},
                        .mpi = mpi_version,
                        .settings = common_settings(),
                        .offer = offer,
                        .findings = findings.all()};
    char name[HOST_NAME_MAX + 1] = {};
    gethostname(name, sizeof name - 1);
    statement.host = name;
    const os::Cpus cpus = os::usable_cpus();
    for (std::int64_t cpu = 0; cpu < os::Cpus::kMost; ++cpu)
        if ((cpus.mask[cpu / 64] >> (cpu % 64) & 1) != 0) statement.cpus.push_back(cpu);
    statement.cpu_quota = cpus.quota;
    statement.online_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const std::string library = library_file();
    statement.libcoco =
        std::string("version " COCO_VERSION) + (library.empty() ? "" : " (" + hash_of_file(library) + ")");
    return statement;
}

}  // namespace coco::tools
