// SPDX-License-Identifier: BSD-3-Clause
//
// Makes rules of what was measured: as few as lose under 2 % at each size. Called by tune_write.cc. Pure
// functions; never fail.
#pragma once
#include <span>
#include <vector>

#include "tools/tune_costs.h"

namespace coco::tools {

// Columns in a row with one candidate.
struct Stretch {
    std::size_t first, columns;  // the first one, and how many
    std::size_t candidate;
};
// As few stretches as there can be so that each column allows its candidate; of those the ones with most
// preferred candidates, then the cheapest. Returns: nothing if some column allows none.
std::vector<Stretch> fewest_stretches(std::span<const Column> columns);

// Collectives that get the same rules, and what their rules choose, from size to size.
struct Group {
    std::size_t first, count;  // of a table's collectives
    std::vector<Stretch> stretches;
    std::span<const Costs> members(const CostTable& table) const {
        return std::span(table.collectives).subspan(first, count);
    }
};
// Every collective of the table is in one group; all groups together have as few stretches as there can be.
std::vector<Group> fewest_groups(const CostTable& table);

struct Tuned {
    CostTable costs;
    std::vector<Group> groups;
    std::vector<policy::Rule> rules;
    // What the rules choose for a cell.
    const policy::Choice& chosen(algorithms::Collective collective, std::uint64_t block_bytes) const;
    // At how many sizes samples scatter so much that what was chosen may lose over a tenth.
    std::size_t uncertain_sizes() const;
};
// policy: by which calls are chosen for without these rules.
Tuned tune(const TuneReport& report, const policy::Policy& policy);

// A time as people read it: "12.1".
std::string us_text(double ns);

}  // namespace coco::tools
