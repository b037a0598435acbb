// SPDX-License-Identifier: BSD-3-Clause
//
// The COCO_ settings of this process, read and checked in one place, without MPI: the library refuses at
// MPI_Init what `coco info` and `coco run` refuse, with the same line. Called by dispatch and by the command.
// Thread safety: none; called once. Fails: the first wrong setting's line; never throws for what a user
// wrote.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "policy/policy.h"

namespace coco::settings {

// COCO_LEARN.
struct Learn {
    bool is_on = true;
    bool reads = true;         // what earlier jobs have learned counts
    std::string file;          // where that is; empty: in the cache
    bool is_restless = false;  // for tests: choose/learner.h
};

struct Settings {
    policy::Policy policy;
    std::uint64_t test_delay_us = 0;
    bool test_pieces = false;
    Learn learn;
};

// COCO_DISABLE=1: nothing of ours runs, and no other setting but COCO_STATS counts.
bool is_switched_off();
// Reads every setting of base::settings(); stats is configured by it. Returns: nothing if all are right, else
// the line for the user about the first that is wrong: the variable, its value, what is allowed.
std::optional<std::string> read(Settings& settings);
// Whether ranks may have different values of a setting. The policy file's name may differ: only its rules
// count.
bool is_own_affair(std::string_view name);
// A hash of all that decides which path a call takes: ranks whose hashes are equal choose alike.
std::uint64_t choice_hash(const policy::Policy& policy);

}  // namespace coco::settings
