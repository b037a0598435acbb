// SPDX-License-Identifier: BSD-3-Clause
//
// What it costs to make a schedule and to walk it, against plain loops over the same blocks: one process
// stands in for all ranks of a node, without waiting.
//
//   build/mpich/bench/schedule [RANKS]        # default 64
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "algorithms/algorithm.h"
#include "comm/comm.h"
#include "exec/copy_block.h"
#include "exec/walk.h"

namespace {

using coco::algorithms::Exchange;
using coco::schedule::Area;
using coco::schedule::Schedule;

double now_ns() {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

struct World {
    World(int ranks, std::size_t block) : ranks(ranks), block(block) {
        rows.resize(3 * static_cast<std::size_t>(ranks));
        for (int area = 0; area < 2; ++area)
            for (int r = 0; r < ranks; ++r) {
                auto* at =
                    static_cast<std::byte*>(std::aligned_alloc(4096, (ranks * block + 4095) / 4096 * 4096));
                std::fill_n(at, ranks * block, std::byte{1});
                rows[area * ranks + r] = {at, static_cast<std::int64_t>(block)};
            }
    }
    int ranks;
    std::size_t block;
    std::vector<coco::comm::Row> rows;

    // A View as exec's: the same addresses, nothing to wait for.
    void copy(const coco::schedule::Step& step) {
        const coco::comm::Row& from = rows[static_cast<int>(step.source_area) * ranks + step.source_owner];
        const coco::comm::Row& to = rows[static_cast<int>(step.target_area) * ranks + step.target_owner];
        coco::exec::copy_block(to.base + step.target_index * to.stride_bytes,
                               from.base + step.source_index * from.stride_bytes, block);
    }
    void wait(int, coco::schedule::Milestone) {}
    void raise(coco::schedule::Milestone) {}
};

// One rank's part.
void plain(World& w, int r) {
    for (int i = 0; i < w.ranks; ++i) {
        int peer = r + i < w.ranks ? r + i : r + i - w.ranks;
        coco::exec::copy_block(w.rows[w.ranks + r].base + peer * w.block, w.rows[peer].base + r * w.block,
                               w.block);
    }
}

// Rank by rank, as each has its schedule and its blocks in its own cache: the best of many turns of each.
template <class Work>
double best_ns_per_block(const World& w, Work work) {
    double sum = 0;
    for (int r = 0; r < w.ranks; ++r) {
        double best = 1e300;
        for (int i = 0; i < 40; ++i) {
            double begin = now_ns();
            for (int turn = 0; turn < 10; ++turn) work(r);
            best = std::min(best, (now_ns() - begin) / 10);
        }
        sum += best;
    }
    return sum / w.ranks / w.ranks;
}

}  // namespace

int main(int argc, char** argv) {
    const int ranks = argc > 1 ? std::atoi(argv[1]) : 64;
    const coco::topology::NodeMap map = coco::topology::one_node(ranks, 2);
    std::printf("%d ranks, ns a block, best of 40\n%8s %8s", ranks, "bytes", "loops");
    std::vector<std::pair<std::string_view, std::vector<Schedule>>> all;
    for (const auto& a : coco::algorithms::registry()) {
        if (!serves(a, coco::algorithms::Collective::alltoall) || a.is_eager()) continue;
        std::vector<Schedule> schedules;
        double begin = now_ns();
        for (int r = 0; r < ranks; ++r)
            schedules.push_back(a.make_schedule({Exchange::alltoall, r, &map, 0, 1}));
        std::printf(" %11.*s", static_cast<int>(a.name.size()), a.name.data());
        std::fprintf(stderr, "%.*s: made in %.1f us a rank\n", static_cast<int>(a.name.size()), a.name.data(),
                     (now_ns() - begin) / ranks / 1000);
        all.emplace_back(a.name, std::move(schedules));
    }
    std::printf("\n");
    for (std::size_t block : {8, 64, 512, 4096}) {
        World w(ranks, block);
        std::printf("%8zu %8.2f", block, best_ns_per_block(w, [&](int r) { plain(w, r); }));
        for (auto& row : all)
            std::printf(" %11.2f", best_ns_per_block(w, [&](int r) { coco::exec::walk(row.second[r], w); }));
        std::printf("\n");
    }
}
