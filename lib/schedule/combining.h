// SPDX-License-Identifier: BSD-3-Clause
//
// Who sends whose blocks where, when ranks of a graph with neighbours in common combine their messages to
// them: one rank's part of that pattern, and how it is made by rounds of letters between ranks. No rank ever
// holds the whole graph. Called by comm, which carries the letters, and by algorithms. Edges within a node
// take no part. Thread safety: pure functions, one object for each rank.
//
// Source: Mirsadeghi, Traeff, Balaji, Afsahi, Exploiting Common Neighborhoods to Optimize MPI Neighborhood
// Collectives, HiPC 2017: sections IV (algorithms 1 and 2). Unlike there
// - all ranks take part in all rounds and end together, so that nobody has to say that it is done;
// - who has dropped a friend, or was dropped by it, still hears that the friend is settled: else it could
//   wait for it for ever;
// - of friends with equally many common neighbours the one counts for more whose rank differs from one's own
//   in lower bits, as both say alike: in regular graphs all ranks find such a partner at once. (With the
//   lower rank first they pair along long chains, one pair after the other; in an order without a pattern
//   many are left over, and the slowest rank has the messages of one that is.)
// - a neighbour that was onloaded may take part again, up to `depth` times: what a rank carries for its
//   partners goes on with its own. Depth 1 is the paper's.
// Each iteration pairs at least the two friends whose edge counts for most, and takes from one of them a
// neighbour for good, so there are at most as many iterations as edges. Within one each round makes a pair or
// has a rank drop a friend: who sticks to a higher rank that sticks to one higher still, and so on, ends at a
// rank that was chosen by a lower one and takes it, or one like it.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "schedule/edges.h"

namespace coco::schedule {

// The blocks of one rank for a neighbour: as many as there are edges. In an allgather they are one.
struct Load {
    std::int32_t origin;
    std::int32_t blocks;
    friend bool operator==(const Load&, const Load&) = default;
};
// What goes to one neighbour, in this order. rank: the neighbour; of what arrives, its sender.
struct Cargo {
    std::int32_t rank;
    std::vector<Load> loads;
    std::int32_t level = 0;  // of what is sent: the highest of the trades that bring some of it
};

// What a rank does as one of a pair. A trade of level 1 has only what the two ranks had from the start; of a
// higher one, also what one of them has taken over in trades of lower levels. Both know the level.
struct Trade {
    std::int32_t iteration;
    std::int32_t partner;
    std::int32_t level;
    std::vector<Cargo> given, taken;  // all that the one has, and the other will send on
};
// First all trades of the lowest level go, at once, then those of the next, and cargo behind all trades with
// its receiver. So nobody waits for a message of a level that another sends behind a wait for the same level,
// or a higher one, and the messages between two ranks have one order: by level and iteration the trades, then
// the one cargo.
struct CombinedSends {
    std::vector<Trade> trades;   // by level and iteration
    std::vector<Cargo> cargoes;  // by level; to each neighbour at most one
};
struct CombinedReceives {
    std::vector<Cargo> arrivals;  // those that carry least first; from each neighbour at most one
};
struct Combining {
    CombinedSends sends;
    CombinedReceives receives;
};

// By level and iteration.
void sort_trades(std::vector<Trade>& trades);
// What a cargo has in it: blocks, or in an allgather one for each origin.
std::int32_t blocks_in(const Cargo& cargo, bool personal);
// Of all arrivals of several blocks.
std::int32_t blocks_arriving(const CombinedReceives& receives, bool personal);

// Neighbours in common that make two ranks friends, where nothing is said.
inline constexpr std::int32_t kUsualThreshold = 4;

// From or to a rank; at most one a round.
struct Letter {
    std::int32_t rank;
    std::vector<std::int32_t> words;
};

// Makes one rank's part. All ranks go through the same rounds:
//     while (!maker.done()) {
//         maker.hear(what others spoke to this rank)    of maker.speak()
//         maker.turn(whether any rank's maker wants_more())
//     }
class CombiningMaker {
  public:
    // threshold: neighbours in common that make two ranks friends; 0: kUsualThreshold. depth: 0: any.
    CombiningMaker(const topology::NodeMap& map, std::int32_t rank, const Neighborhood& neighborhood,
                   std::int32_t threshold, std::int32_t depth);
    // The same for the vertices of another graph, as nodes with edges between them: how many blocks go to
    // whom, and come from whom.
    using Blocks = std::map<std::int32_t, std::int32_t>;
    CombiningMaker(std::int32_t vertex, const Blocks& to, const Blocks& from, std::int32_t threshold,
                   std::int32_t depth);

    bool done() const { return stage_ == Stage::done; }
    std::vector<Letter> speak();
    void hear(std::span<const Letter> letters);
    bool wants_more() const;
    void turn(bool any_wants_more);
    // Requires (both): done().
    std::size_t pairs() const { return made_.sends.trades.size(); }
    Combining take();

  private:
    enum class Stage : std::uint8_t { sources, choices, states, outcomes, done };
    enum class State : std::uint8_t { looking, paired, terminal };
    static constexpr std::int32_t kNobody = -1;

    // An active neighbour.
    struct Outgoing {
        std::vector<Load> loads;
        std::vector<std::int32_t> sources;  // its active incoming neighbours: a row of the paper's matrix
        std::int32_t times = 0;             // onloaded
        std::int32_t level = 0;             // of its cargo
    };
    struct Friend {
        std::int32_t common;  // neighbours
        bool candidate = true, settled = false;
        std::int32_t choice = kNobody;  // in the last round
    };

    std::vector<Letter> tell_friends(std::int32_t word) const;
    void find_friends();
    void choose();
    bool counts_for_more(std::int32_t a, std::int32_t b) const;
    std::int32_t best_candidate() const;
    std::int32_t lower_one_that_chose_me() const;
    std::vector<Letter> divide();
    void hear_choices(std::span<const Letter> letters);
    void hear_outcomes(std::span<const Letter> letters);
    void take_over(std::span<const std::int32_t> words);

    const std::int32_t rank_, threshold_, depth_;
    std::map<std::int32_t, Outgoing> out_;
    std::map<std::int32_t, std::vector<Load>> in_;  // by active incoming neighbour, what it carries
    std::map<std::int32_t, Friend> friends_;
    Stage stage_ = Stage::sources;
    State state_ = State::terminal;
    bool settled_now_ = false;
    std::int32_t choice_ = kNobody;
    std::int32_t iteration_ = 0;
    Combining made_;
};

}  // namespace coco::schedule
