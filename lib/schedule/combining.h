// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks with common neighbours combine their messages to them. The pattern says which rank sends whose blocks
// to which rank. Here is one rank's part of the pattern, and how it is made by rounds of letters between
// ranks. No rank ever holds the whole graph. Edges within a node take no part. Called by comm, which carries
// the letters, and by algorithms. The whole story: docs/neighbors.md. Thread safety: pure functions,
// one object for each rank.
//
// Source: Mirsadeghi, Traeff, Balaji, Afsahi, Exploiting Common Neighborhoods to Optimize MPI Neighborhood
// Collectives, HiPC 2017: section IV (algorithm 1). Differences from the paper:
// - All ranks take part in all rounds and end together, so that no rank has to say that it is done.
// - In place of algorithm 2, a rank chooses several friends at once. Two ranks that choose each other are a
//   pair, and share the neighbours that both have set aside for the other. An iteration takes three rounds.
// - Both ranks of a pair weigh it alike as a first choice: by the common neighbours, a quarter more if one of
//   them chose the other before. Of equal friends the one comes first whose number differs in lower bits
//   only. So in regular graphs all ranks find a partner at once.
// - The longer it takes, the more common neighbours a pair needs: what is left is not worth the rounds.
// - A neighbour that was onloaded may take part again, up to `depth` times: what a rank carries for its
//   partners goes on with its own blocks. Depth 1 is the paper's.
// Why it ends: the pair that weighs most is the first choice of both, so each iteration makes a pair, which
// takes a neighbour from one of the two for good. And ranks with d neighbours each have no friends any more
// after 15 d / threshold iterations.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/check.h"
#include "schedule/edges.h"

namespace coco::schedule {

// The blocks of one rank, the origin, for one neighbour: one for each edge between them. In an allgather they
// are one and the same block.
struct Load {
    std::int32_t origin;
    std::int32_t blocks;
    friend bool operator==(const Load&, const Load&) = default;
};
// All that goes to one neighbour in one message, in this order. rank: the neighbour; for what arrives, the
// sender.
struct Cargo {
    std::int32_t rank;
    std::vector<Load> loads;
    std::int32_t level = 0;  // cargo to be sent: the highest level of the trades that bring a part of it
};

// The exchange of a rank with its partner in a pair. In a trade of level 1 both give only what they had from
// the start; in one of a higher level also what one of them has taken over in trades of lower levels. Both
// ranks know the level.
struct Trade {
    std::int32_t iteration;
    std::int32_t partner;
    std::int32_t level;
    std::vector<Cargo> given, taken;  // what this rank gives, and what it takes over and will send on
};
// The order of a rank's messages: first all trades of the lowest level, at once, then those of the next
// level, and cargo to a rank behind all trades with that rank. So no rank waits for a message of some level
// that its sender sends only after a wait for the same level or a higher one. And the messages between two
// ranks have one order: trades by level and iteration, then the cargo.
struct CombinedSends {
    std::vector<Trade> trades;   // by level and iteration
    std::vector<Cargo> cargoes;  // by level; to each neighbour at most one
};
struct CombinedReceives {
    std::vector<Cargo> arrivals;  // sorted, those that carry least first; from each neighbour at most one
};
struct Combining {
    CombinedSends sends;
    CombinedReceives receives;
};

// The number of blocks in a cargo. In an allgather (not personal) that is one for each origin.
std::int32_t blocks_in(const Cargo& cargo, bool personal);
// The number of blocks in all those arrivals that have several blocks.
std::int32_t blocks_arriving(const CombinedReceives& receives, bool personal);

// The number of common neighbours that makes two ranks friends, if the user names none.
inline constexpr std::int32_t kUsualThreshold = 4;

// Words from or to a rank.
struct Letter {
    std::int32_t rank;
    std::vector<std::int32_t> words;
};

// Makes one rank's part of the pattern. All ranks go through the same rounds:
//     while (!maker.done()) {
//         maker.hear(the letters to this rank that the ranks' maker.speak() returned)
//         maker.turn(whether wants_more() is true on any rank)
//     }
class CombiningMaker {
  public:
    // threshold: how many common neighbours make two ranks friends; 0: kUsualThreshold. depth: how often a
    // neighbour may be onloaded; 0: any number.
    CombiningMaker(const topology::NodeMap& map, std::int32_t rank, const Neighborhood& neighborhood,
                   std::int32_t threshold, std::int32_t depth);

    bool done() const { return stage_ == Stage::done; }
    std::vector<Letter> speak();
    void hear(std::span<const Letter> letters);
    bool wants_more() const { return !chosen_.empty(); }
    void turn(bool any_wants_more);
    // Requires (both): done().
    std::size_t pairs() const {
        COCO_CHECK(done(), "pairs are counted when all rounds are over");
        return made_.sends.trades.size();
    }
    Combining take();

  private:
    enum class Stage : std::uint8_t { sources, choices, outcomes, done };
    static constexpr std::size_t kMostChoices = 3;       // in an iteration
    static constexpr std::int32_t kEasyIterations = 15;  // after each so many, pairs need `threshold` more

    // An active neighbour: one to which this rank still sends by itself.
    struct Outgoing {
        std::vector<Load> loads;
        std::vector<std::int32_t> sources;  // its active incoming neighbours: a row of the paper's matrix
        std::int32_t times = 0;             // how often it was onloaded
        std::int32_t level = 0;             // the level of its cargo
    };
    // How many common neighbours a pair needs now.
    std::int32_t needed() const { return threshold_ * (1 + iteration_ / kEasyIterations); }
    void choose();
    void hear_choices(std::span<const Letter> letters);
    void divide(std::int32_t partner, std::span<const std::int32_t> common, std::vector<Letter>& letters);
    void hear_outcomes(std::span<const Letter> letters);
    void take_over(std::int32_t partner, std::span<const std::int32_t> words);

    const std::int32_t rank_, threshold_, depth_;
    std::map<std::int32_t, Outgoing> out_;
    std::map<std::int32_t, std::vector<Load>> in_;  // by active incoming neighbour, what it will send here
    // By friend: the neighbours to share with it; each with one friend.
    std::map<std::int32_t, std::vector<std::int32_t>> chosen_;
    std::vector<bool> wished_;  // by rank: this rank chose it in the last iteration, or it chose this rank
    Stage stage_ = Stage::sources;
    std::int32_t iteration_ = 0;
    Combining made_;
};

}  // namespace coco::schedule
