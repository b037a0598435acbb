// SPDX-License-Identifier: BSD-3-Clause
#include "tools/doctor_statement.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/env.h"
#include "os/probe.h"
#include "policy/learned.h"
#include "settings/settings.h"
#include "tools/launch.h"

namespace coco::tools {

using nlohmann::json;

// The names by which nlohmann's library finds them.
static void to_json(json& to, const Finding& f) {
    to = json::array({f.check, static_cast<int>(f.level), f.what, f.remedy});
}
static void from_json(const json& from, Finding& f) {
    constexpr int kMost = static_cast<int>(Level::problem);
    f = {from.at(0), static_cast<Level>(std::clamp(from.at(1).get<int>(), 0, kMost)), from.at(2), from.at(3)};
}
static void to_json(json& to, const Offer& o) {
    to = json::array({o.rank, o.host, o.process, o.descriptor, o.cookie, o.address});
}
static void from_json(const json& from, Offer& o) {
    o = {from.at(0), from.at(1), from.at(2), from.at(3), from.at(4), from.at(5)};
}
static void to_json(json& to, const Reach& r) {
    to = json::array({r.mate, r.open_error, r.read_error, r.open_remedy, r.read_remedy, r.passed});
}
static void from_json(const json& from, Reach& r) {
    r = {from.at(0), from.at(1), from.at(2), from.at(3), from.at(4), from.at(5)};
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Tried, rank, failed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Statement, rank, host, namespaces, user, cpus, cpu_quota, online_cpus,
                                   libcoco, mpi, settings, offer, findings)

namespace {

// Environments and names of files may hold bytes that are no text.
std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

// Fractions are none of ours, and one beyond all integers must not become one.
template <class Value>
std::optional<Value> read(const std::string& text) {
    bool has_fraction = false;
    auto look = [&](int, json::parse_event_t, const json& value) {
        has_fraction |= value.is_number_float();
        return true;
    };
    try {
        const json value = json::parse(text, look);
        if (has_fraction) return std::nullopt;
        return value.get<Value>();
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

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

std::string text_of(const Statement& statement) { return dump(statement); }
std::optional<Statement> read_statement(const std::string& text) { return read<Statement>(text); }
std::string text_of(const Tried& tried) { return dump(tried); }
std::optional<Tried> read_tried(const std::string& text) { return read<Tried>(text); }
std::string text_of(const std::vector<Offer>& offers) { return dump(offers); }
std::vector<Offer> read_offers(const std::string& text) {
    return read<std::vector<Offer>>(text).value_or(std::vector<Offer>{});
}

}  // namespace coco::tools
