// SPDX-License-Identifier: BSD-3-Clause
#include "tools/doctor_statement.h"

#include <nlohmann/json.hpp>

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
static void to_json(json& to, const Failure& f) {
    to = json::array({f.mate, f.is_of_reading, f.error, f.remedy, f.passed});
}
static void from_json(const json& from, Failure& f) {
    f = {from.at(0), from.at(1), from.at(2), from.at(3), from.at(4)};
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Tried, rank, failed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Statement, rank, host, namespaces, user, cpus, cpu_quota, online_cpus,
                                   libcoco, mpi, settings, offer, findings)

namespace {

// Environments and names of files may hold bytes that are no text.
std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

// No number of ours is a fraction, and a fraction beyond all integers must not become one.
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

}  // namespace

std::string text_of(const Statement& statement) { return dump(statement); }
std::optional<Statement> read_statement(const std::string& text) { return read<Statement>(text); }
std::string text_of(const Tried& tried) { return dump(tried); }
std::optional<Tried> read_tried(const std::string& text) { return read<Tried>(text); }
std::string text_of(const std::vector<Offer>& offers) { return dump(offers); }
std::vector<Offer> read_offers(const std::string& text) {
    return read<std::vector<Offer>>(text).value_or(std::vector<Offer>{});
}

}  // namespace coco::tools
