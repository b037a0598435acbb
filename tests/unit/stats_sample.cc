// SPDX-License-Identifier: BSD-3-Clause
// A report with every kind of row, as JSON on stdout, for stats_schema.py.
#include <cstdio>
#include <cstring>
#include <vector>

#include "stats/stats.h"

namespace {

using coco::stats::Reason;
using coco::stats::Row;

Row row(int rank, int block_class, Reason reason, const char* algorithm) {
    Row r{};
    r.collective = static_cast<std::uint8_t>(block_class % 6);
    r.block_class = static_cast<std::uint8_t>(block_class);
    r.reason = reason;
    std::strcpy(r.algorithm, algorithm);
    r.comm_ranks = 4;
    r.rank = rank;
    r.calls = 3;
    r.bytes = 3000;
    r.messages = 12;
    r.wire_bytes = 3600;
    r.total_ns = 9000;
    r.wait_ns = 1000;
    r.time_class[11] = 3;
    return r;
}

}  // namespace

int main() {
    std::vector<Row> rows;
    for (int rank : {0, 1, 3}) {
        for (int block_class : {0, 1, 13, 255}) rows.push_back(row(rank, block_class, Reason::none, "eager"));
        for (int reason = 1; reason < static_cast<int>(Reason::kReasons); ++reason)
            rows.push_back(row(rank, 7, static_cast<Reason>(reason), "mpi"));
    }
    std::vector<coco::stats::Learned> learned;
    for (std::uint64_t block_last : {std::uint64_t{1}, std::uint64_t{8192}, UINT64_MAX})
        learned.push_back({.collective = 2,
                           .nodes = 2,
                           .ranks_per_node = 3,
                           .block_first = 0,
                           .block_last = block_last,
                           .candidates = {{"eager", 1200, 1100, 1400},
                                          {"mpi", 1000, 900, 1050},
                                          {"bruck:radix=4", 0, 0, 0}},
                           .incumbent = 1,
                           .calls = 100,
                           .looks = 2,
                           .changes = 1,
                           .spent_ns = 12'000});
    std::fputs(coco::stats::json(rows, 4, learned).c_str(), stdout);
}
