// SPDX-License-Identifier: BSD-3-Clause
//
// The cost of making a schedule and of walking it, against plain loops over the same blocks (naive's order;
// along the Morton curve, where the ranks are a power of two and the CPU extracts bits): one process stands
// in for all ranks of a node. Twice: with copies alone, and with what a right program does besides, one look
// at a flag for each peer that must have come, one for each that must be through. All flags are up.
//
//   build/bench/schedule [RANKS]        # default 64
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "blocks/copy_block.h"
#include "blocks/store.h"
#include "exec/walk.h"

namespace {

using coco::algorithms::Exchange;
using coco::schedule::Schedule;
namespace schedule = coco::schedule;

constexpr std::uint64_t kUp = UINT64_MAX;
constexpr coco::sync::WaitPolicy kPolicy;

double now_ns() {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

struct World {
    World(int ranks, std::size_t block) : ranks(ranks), block(block), flags(ranks) {
        for (auto& flag : flags) flag.value = kUp;
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
    std::vector<coco::blocks::Row> rows;
    std::vector<coco::sync::Flag> flags;
};

// A View as exec's: the same addresses, nobody to wait for in earnest.
template <bool waits>
struct View {
    World& w;
    int rank;

    static constexpr bool kRows = true;
    const coco::blocks::Row& row(schedule::Area area, int owner) {
        return w.rows[static_cast<int>(area) * w.ranks + owner];
    }
    void copy(std::byte* target, const std::byte* source) {
        coco::blocks::copy_block(target, source, w.block);
    }
    void wait(int peer, schedule::Milestone milestone) {
        if constexpr (waits)
            coco::sync::wait(w.flags[peer].value, w.flags[peer].doorbell, milestone + 1, kPolicy);
    }
    void raise(schedule::Milestone) {
        if constexpr (waits) coco::sync::raise(w.flags[rank].value, w.flags[rank].doorbell, kUp);
    }
};

constexpr std::uint64_t kRowBits = 0xAAAAAAAAAAAAAAAAu;

// The rank that copies a block of the Morton curve.
__attribute__((target("bmi2"))) int copier(int row, int column, int ranks) {
    return static_cast<int>((__builtin_ia32_pdep_di(static_cast<std::uint64_t>(row), kRowBits) |
                             __builtin_ia32_pdep_di(static_cast<std::uint64_t>(column), ~kRowBits)) /
                            static_cast<std::uint64_t>(ranks));
}

// One rank's part.
template <bool waits>
void plain(World& w, int r) {
    View<waits> flags{w, r};
    flags.raise(schedule::kArrived);
    for (int i = 0; i < w.ranks; ++i) {
        int peer = r + i < w.ranks ? r + i : r + i - w.ranks;
        flags.wait(peer, schedule::kArrived);
        coco::blocks::copy_block(w.rows[w.ranks + r].base + peer * w.block, w.rows[peer].base + r * w.block,
                                 w.block);
    }
    flags.raise(schedule::kDone);
    for (int peer = 0; peer < w.ranks; ++peer) flags.wait(peer, schedule::kDone);
}

// One rank's part of the Morton curve: a box of the matrix, of `high` receivers and `wide` senders.
template <bool waits>
__attribute__((target("bmi2"))) void plain_curve(World& w, int r) {
    View<waits> flags{w, r};
    const int bits = std::countr_zero(static_cast<unsigned>(w.ranks));
    const int high = 1 << (bits / 2), wide = w.ranks / high;
    const auto first = static_cast<std::uint64_t>(r) * static_cast<std::uint64_t>(w.ranks);
    auto row_at = [&](int i) __attribute__((target("bmi2"))) {
        return static_cast<int>(__builtin_ia32_pext_di(first + i, kRowBits));
    };
    auto column_at = [&](int i) __attribute__((target("bmi2"))) {
        return static_cast<int>(__builtin_ia32_pext_di(first + i, ~kRowBits));
    };
    const int top = row_at(0), left = column_at(0);
    flags.raise(schedule::kArrived);
    for (int i = 0; i < w.ranks; ++i) {
        int row = row_at(i), column = column_at(i);
        if (row == top) flags.wait(column, schedule::kArrived);
        if (column == left) flags.wait(row, schedule::kArrived);
        coco::blocks::copy_block(w.rows[w.ranks + row].base + column * w.block,
                                 w.rows[column].base + row * w.block, w.block);
    }
    flags.raise(schedule::kDone);
    // Waits for the ranks whose boxes hold a block that we receive or send.
    for (int i = 0; i < w.ranks; i += wide) flags.wait(copier(r, i, w.ranks), schedule::kDone);
    for (int i = 0; i < w.ranks; i += high) flags.wait(copier(i, r, w.ranks), schedule::kDone);
}

bool has_plain_curve(int ranks) {
    return std::has_single_bit(static_cast<unsigned>(ranks)) && __builtin_cpu_supports("bmi2");
}

// Times works that each do a rank's part: rank by rank, as each rank has its schedule and its blocks in its
// own cache, in turns, the best of many.
std::vector<double> best_ns_per_block(const World& w, const std::vector<std::function<void(int)>>& works) {
    std::vector<double> sums(works.size());
    for (int r = 0; r < w.ranks; ++r) {
        std::vector<double> best(works.size(), 1e300);
        for (int turn = 0; turn < 40; ++turn)
            for (std::size_t i = 0; i < works.size(); ++i) {
                works[i](r);
                double begin = now_ns();
                for (int again = 0; again < 10; ++again) works[i](r);
                best[i] = std::min(best[i], (now_ns() - begin) / 10);
            }
        for (std::size_t i = 0; i < works.size(); ++i) sums[i] += best[i] / w.ranks / w.ranks;
    }
    return sums;
}

// Schedules of one algorithm, by rank.
struct Made {
    std::string_view name;
    std::vector<Schedule> schedules;
};

std::vector<Made> make_all(int ranks, const coco::topology::NodeMap& map) {
    std::vector<Made> all;
    for (const auto& a : coco::algorithms::registry()) {
        if (!serves(a, coco::algorithms::Collective::alltoall) || !a.one_node() || a.is_eager()) continue;
        Made made{a.name, {}};
        double begin = now_ns();
        for (int r = 0; r < ranks; ++r)
            made.schedules.push_back(a.make_schedule({Exchange::alltoall, r, &map, 0, 1}));
        std::printf("%s: made in %.1f us a rank\n", std::string(a.name).c_str(),
                    (now_ns() - begin) / ranks / 1000);
        all.push_back(std::move(made));
    }
    return all;
}

template <bool waits>
void compare(int ranks, const std::vector<Made>& all) {
    std::printf("\n%s\n%8s %8s", waits ? "copies and a look at each flag" : "copies alone", "bytes", "loops");
    const bool curve = has_plain_curve(ranks);
    if (curve) std::printf(" %18s", "loops on curve");
    for (const Made& made : all) std::printf(" %18s", std::string(made.name).c_str());
    std::printf("\n");
    for (std::size_t block : {8, 64, 512, 4096}) {
        World w(ranks, block);
        std::vector<std::function<void(int)>> works{[&](int r) { plain<waits>(w, r); }};
        if (curve) works.emplace_back([&](int r) { plain_curve<waits>(w, r); });
        for (const Made& made : all)
            works.emplace_back([&](int r) {
                View<waits> view{w, r};
                coco::exec::walk(made.schedules[r], view);
            });
        std::vector<double> ns = best_ns_per_block(w, works);
        std::printf("%8zu %8.2f", block, ns[0]);
        for (std::size_t i = 1; i < ns.size(); ++i)
            std::printf(" %10.2f (%+3.0f %%)", ns[i], 100 * (ns[i] / ns[0] - 1));
        std::printf("\n");
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int ranks = argc > 1 ? std::atoi(argv[1]) : 64;
    if (argc > 2 || ranks < 1 || ranks > 4096) {
        std::fprintf(stderr, "usage: schedule [RANKS]   RANKS from 1 to 4096, 64 if not given\n");
        return 2;
    }
    const coco::topology::NodeMap map = coco::topology::one_node(ranks, 2);
    std::printf("%d ranks, ns a block, best of 40\n", ranks);
    std::vector<Made> all = make_all(ranks, map);
    compare<false>(ranks, all);
    compare<true>(ranks, all);
}
