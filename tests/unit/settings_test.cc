// SPDX-License-Identifier: BSD-3-Clause
#include "settings/settings.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "base/env.h"
#include "stats/stats.h"

using namespace coco;

namespace {

// Sets one variable and no other, as long as it lives.
struct Only {
    Only(const char* name, const char* value) : name_(name) {
        for (const base::Setting& s : base::settings()) unsetenv(s.name);
        setenv(name, value, 1);
    }
    ~Only() {
        unsetenv(name_);
        stats::configure();
    }
    const char* name_;
};

std::string refusal(const char* name, const char* value) {
    Only only(name, value);
    settings::Settings settings;
    return settings::read(settings).value_or("");
}

std::uint64_t hash_with(const char* name, const char* value) {
    Only only(name, value);
    settings::Settings settings;
    REQUIRE_FALSE(settings::read(settings));
    return settings::choice_hash(settings.policy);
}

}  // namespace

TEST_CASE("a wrong setting is told with its value and what is allowed", "[settings]") {
    CHECK(refusal("COCO_LOG", "loud") == "COCO_LOG=loud: must be error, warn, info or debug");
    for (auto [name, value] : {std::pair{"COCO_HEAP_LIMIT", "12Q"},
                               {"COCO_TEST_DELAY", "soon"},
                               {"COCO_STATS", "2"},
                               {"COCO_TOPOLOGY", "nodes=few"}}) {
        CAPTURE(name);
        std::string line = refusal(name, value);
        CHECK(line.starts_with(std::string(name) + "=" + value + ": must be " + base::setting(name).choices));
        CHECK(line.find('\n') == std::string::npos);
    }
    CHECK(refusal("COCO_DISABLE", "barrier").starts_with("COCO_DISABLE=barrier: "));
    CHECK(refusal("COCO_BCAST", "morton").starts_with("COCO_BCAST=morton: "));
    CHECK(refusal("COCO_POLICY", "/no/such").starts_with("COCO_POLICY=/no/such: "));
}

TEST_CASE("right settings are taken", "[settings]") {
    for (auto [name, value] : {std::pair{"COCO_LOG", "info"},
                               {"COCO_HEAP_LIMIT", "1G"},
                               {"COCO_STATS", "a.json"},
                               {"COCO_TOPOLOGY", "nodes=2,domains=2"},
                               {"COCO_DISABLE", "bcast,alltoall"}}) {
        CAPTURE(name);
        CHECK(refusal(name, value) == "");
    }
    Only only("COCO_TEST_DELAY", "30");
    settings::Settings settings;
    REQUIRE_FALSE(settings::read(settings));
    CHECK(settings.test_delay_us == 30);
    CHECK_FALSE(settings.policy.rules.empty());
    CHECK_FALSE(settings::is_switched_off());
}

TEST_CASE("the hash tells apart what makes ranks choose differently, and nothing else", "[settings]") {
    const std::uint64_t plain = hash_with("COCO_LOG", "warn");
    CHECK(hash_with("COCO_LOG", "debug") == plain);
    CHECK(hash_with("COCO_STATS", "1") == plain);
    CHECK(hash_with("COCO_HEAP_LIMIT", "1G") == plain);
    CHECK(hash_with("COCO_ALLTOALL", "morton") != plain);
    CHECK(hash_with("COCO_ALLTOALL", "morton") != hash_with("COCO_ALLTOALL", "naive"));
    CHECK(hash_with("COCO_DISABLE", "bcast") != plain);
    CHECK(hash_with("COCO_TOPOLOGY", "nodes=2") != plain);
}
