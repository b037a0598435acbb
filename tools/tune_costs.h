// SPDX-License-Identifier: BSD-3-Clause
//
// What the candidates of `coco tune` cost, by collective and size, made of what was measured. Called by
// tune_rules.cc. Pure functions; never fail.
//
// What a candidate costs at a size is the geometric mean of its times with warm and with cold buffers: a
// program has some calls of either sort, and a choice that saves a tenth in one of them and loses as much in
// the other is neither better nor worse. (By the larger of both losses, often no choice would lose little, as
// another one is best in either sort.) The cheapest candidate at a size counts 1. What others lose against it
// is known as well as samples tell: rules shall not follow their noise, so a loss counts as far as it exceeds
// two deviations of both medians.
#pragma once
#include <limits>
#include <vector>

#include "tools/tune_report.h"

namespace coco::tools {

inline constexpr double kUnknown = std::numeric_limits<double>::infinity();

// One size.
struct Column {
    // By candidate; kUnknown where it was not measured. The cheapest one costs 1.
    std::vector<double> costs;
    std::vector<double> sure_costs;  // as far as that is certain: no more than the costs
    std::size_t preferred = 0;       // the candidate that shall be taken where others are as good

    // Whether a candidate may be chosen here.
    bool allows(std::size_t candidate) const;
};

// One collective.
struct Costs {
    algorithms::Collective collective;
    std::optional<std::uint64_t> degree;
    std::vector<std::uint64_t> sizes;  // in ascending order
    std::vector<Column> columns;       // by size
    // By size and candidate, for people to read: with warm buffers.
    std::vector<std::vector<double>> times_ns;
    std::vector<std::size_t> chosen = {};  // by size: the candidate that the rules choose
};

// All numbers of candidates mean these.
struct CostTable {
    std::vector<policy::Choice> candidates;
    std::vector<Costs> collectives;
};

// Whether rules may ask for the size of this collective's blocks.
bool is_size_known(algorithms::Collective collective);

// policy: by which calls are chosen for without new rules. Its choice is preferred where it is as good as
// any, but for sizes where nothing is faster than the MPI library's own function.
CostTable costs_of(const TuneReport& report, const policy::Policy& policy);

// What a choice may lose at each size that was measured, against the best one there.
inline constexpr double kMostCost = 1.02;
inline bool Column::allows(std::size_t candidate) const { return sure_costs[candidate] <= kMostCost; }

}  // namespace coco::tools
