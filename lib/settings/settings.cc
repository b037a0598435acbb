// SPDX-License-Identifier: BSD-3-Clause
#include "settings/settings.h"

#include <algorithm>
#include <string_view>

#include "base/check.h"
#include "base/env.h"
#include "base/hash.h"
#include "base/heap_mode.h"
#include "base/one_line.h"
#include "os/probe.h"
#include "stats/stats.h"

namespace coco::settings {
namespace {

std::string wrong(const char* name, const std::string& why = {}) {
    COCO_CHECK(!base::env(name).empty(), "a setting that is wrong is set");
    const base::Setting& s = base::setting(name);
    return base::one_line(std::string(name) + "=" + std::string(base::env(name)) + ": must be " + s.choices +
                          (why.empty() ? why : " (" + why + ")"));
}

bool is_log_level(std::string_view text) {
    constexpr std::string_view kLevels[] = {"error", "warn", "info", "debug"};
    return std::ranges::find(kLevels, text) != std::end(kLevels);
}

}  // namespace

bool is_switched_off() { return base::env("COCO_DISABLE") == "1"; }

std::optional<std::string> read(Settings& settings) {
    if (auto log = base::env("COCO_LOG"); !log.empty() && !is_log_level(log)) return wrong("COCO_LOG");
    base::HeapMode mode{};
    if (auto heap = base::env("COCO_HEAP"); !heap.empty() && !base::parse_heap_mode(heap, mode))
        return wrong("COCO_HEAP");
    std::uint64_t bytes = 0;
    if (auto limit = base::env("COCO_HEAP_LIMIT"); !limit.empty() && !base::parse_bytes(limit, bytes))
        return wrong("COCO_HEAP_LIMIT");
    if (auto delay = base::env("COCO_TEST_DELAY");
        !delay.empty() && !base::parse_number(delay, settings.test_delay_us))
        return wrong("COCO_TEST_DELAY");
    if (auto pieces = base::env("COCO_TEST_PIECES"); !pieces.empty()) {
        if (pieces != "0" && pieces != "1") return wrong("COCO_TEST_PIECES");
        settings.test_pieces = pieces == "1";
    }
    if (auto learn = base::env("COCO_LEARN"); !learn.empty()) {
        const bool is_file = learn.find('/') != std::string_view::npos || learn.ends_with(".toml");
        if (learn != "on" && learn != "off" && learn != "read" && !is_file) return wrong("COCO_LEARN");
        settings.learn.is_on = learn == "on" || is_file;
        settings.learn.reads = learn != "off";
        if (is_file) settings.learn.file = learn;
    }
    if (auto restless = base::env("COCO_TEST_LEARN"); !restless.empty()) {
        if (restless != "0" && restless != "1") return wrong("COCO_TEST_LEARN");
        settings.learn.is_restless = restless == "1";
        if (settings.learn.is_restless) settings.learn.reads = false;  // its whims are of no use to others
    }
    std::string why;
    if (auto machine = base::env("COCO_TOPOLOGY"); !machine.empty() && !os::invented_machine(machine, why))
        return wrong("COCO_TOPOLOGY", why);
    if (!stats::configure()) return wrong("COCO_STATS");
    if (auto error = policy::from_environment(settings.policy)) return error->line;
    return std::nullopt;
}

bool is_own_affair(std::string_view name) {
    constexpr std::string_view kOwn[] = {"COCO_LOG",        "COCO_STATS",       "COCO_HEAP",
                                         "COCO_HEAP_LIMIT", "COCO_TEST_DELAY",  "COCO_TEST_PIECES",
                                         "COCO_POLICY",     "COCO_RANK_PROCESS"};
    return std::ranges::find(kOwn, name) != std::end(kOwn);
}

std::uint64_t choice_hash(const policy::Policy& policy) {
    base::Hash hash;
    for (const policy::Rule& rule : policy.rules) hash.add(rule.text);
    for (const base::Setting& s : base::settings())
        if (!is_own_affair(s.name)) hash.add(base::env(s.name));
    return hash.value();
}

}  // namespace coco::settings
