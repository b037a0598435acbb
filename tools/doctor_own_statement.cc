// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "base/env.h"
#include "os/probe.h"
#include "policy/learned.h"
#include "settings/settings.h"
#include "tools/doctor_statement.h"
#include "tools/launch.h"
#include "tools/words.h"

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
    const std::string library = library_file();
    char host[HOST_NAME_MAX + 1] = {};
    gethostname(host, sizeof host - 1);
    Statement own{.rank = offer.rank,
                  .host = host,
                  .namespaces = {},
                  .user = static_cast<std::int64_t>(getuid()),
                  .cpus = own_cpus(),
                  .cpu_quota = os::usable_cpus().quota,
                  .online_cpus = sysconf(_SC_NPROCESSORS_ONLN),
                  .libcoco = "version " COCO_VERSION,
                  .mpi = mpi_version,
                  .settings = common_settings(),
                  .offer = offer,
                  .findings = findings.all()};
    if (!library.empty()) own.libcoco += filled({hash_of_file(library)}, " ({})");
    for (const char* kind : {"pid", "user", "ipc", "net"})
        if (const std::string name = own_namespace(kind); !name.empty()) own.namespaces[kind] = name;
    return own;
}

}  // namespace coco::tools
