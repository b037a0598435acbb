// SPDX-License-Identifier: BSD-3-Clause
// For tests: the policy that a text describes. The text must be well formed.
#pragma once

#include <catch2/catch.hpp>

#include "policy/policy.h"

inline coco::policy::Policy policy_of(const char* rules) {
    coco::policy::Policy policy;
    auto error = coco::policy::parse_rules(rules, "test", policy.rules);
    REQUIRE_FALSE(error);
    return policy;
}
