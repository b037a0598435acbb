// SPDX-License-Identifier: BSD-3-Clause
//
// What `coco tune` has measured: for each cell (a collective, a size of blocks, warm or cold buffers) the
// times of all candidates. Made by tune_measure.cc and tune_session.cc; tune_rules.cc makes rules of it,
// tune_write.cc texts. Thread safety: plain values.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace coco::tools {

// The time of a call by one choice: what the slowest rank took, over the rounds.
struct Figure {
    policy::Choice choice = {};
    std::size_t samples = 0;
    double median_ns = 0, low_ns = 0, high_ns = 0;  // the quartiles
};

struct TunedCell {
    algorithms::Collective collective;
    std::uint64_t block_bytes;
    bool is_cold;
    std::optional<std::uint64_t> degree;  // of neighbours: as rules ask for it
    std::vector<Figure> candidates;
};

struct TuneReport {
    std::string mpi, machine, date;
    policy::Facts facts;  // of the communicator: nodes, ranks of a node, domains, crowded
    int ranks = 0;
    std::size_t planned_cells = 0;
    bool is_complete = false;
    std::vector<TunedCell> cells;
};

}  // namespace coco::tools
