// SPDX-License-Identifier: BSD-3-Clause
//
// What jobs have learned, as text: a policy file whose rules were measured, with a table that says what they
// hold for. It can be given as COCO_POLICY, too. Called by settings and dispatch. Thread safety: pure
// functions. Fails: parsing returns an Error with one line for the user; never throws.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"

namespace coco::policy {

// Rules that were learned hold for jobs of the same key alone.
struct LearnedKey {
    // Each of ASCII letters alone, on one line.
    std::string libcoco;    // version
    std::string mpi;        // the MPI library and its version
    std::string machine;    // processor, and how many a node has
    std::string transport;  // the node's network, and what the environment says of how bytes shall move
    std::string policy;     // of the rules from which learning began, a hash

    friend bool operator==(const LearnedKey&, const LearnedKey&) = default;
};
// The same for equal keys, in hexadecimal digits: for the names of files.
std::string hash_of(const LearnedKey& key);
// Of the rules in their order.
std::string hash_of(std::span<const Rule> rules);

struct Learned {
    LearnedKey key;
    std::vector<Rule> rules;
};

std::string text_of(const Learned& learned);
// Reads what text_of() has written. source: the name for error lines.
std::optional<Error> parse_learned(std::string_view toml, std::string_view source, Learned& learned);

}  // namespace coco::policy
