// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks with common neighbours combine their messages to them. The pattern says which rank sends whose blocks
// to which rank. Here is one rank's part of the pattern, and how it is made by rounds of letters between
// ranks. No rank ever holds the whole graph. Edges within a node take no part. Called by comm, which carries
// the letters, and by algorithms. The whole story: docs/neighbors.md. Thread safety: pure functions,
// one object for each rank.
//
// Source: Mirsadeghi, Traeff, Balaji, Afsahi, Exploiting Common Neighborhoods to Optimize MPI Neighborhood
// Collectives, HiPC 2017: section IV (algorithms 1 and 2). Differences from the paper:
// - All ranks take part in all rounds and end together, so that no rank has to say that it is done.
// - A rank that has dropped a friend, or was dropped by it, still hears when that friend is settled. Else it
//   could wait for the friend for ever.
// - Among friends with equally many common neighbours a rank prefers the one whose number differs from its
//   own in lower bits. Both ranks of a pair see this preference alike, so in regular graphs all ranks find a
//   partner at once. (If the lower rank came first, ranks would pair along long chains, one pair after the
//   other. In an order without a pattern many ranks would find no partner, and these would be the slowest.)
// - A neighbour that was onloaded may take part again, up to `depth` times: what a rank carries for its
//   partners goes on with its own blocks. Depth 1 is the paper's.
// Why it ends: each iteration pairs at least the two friends that prefer each other most, and takes one
// neighbour from one of them for good, so there are at most as many iterations as edges. Within an iteration,
// follow the choices upwards from rank to rank: the last rank on this way was chosen by a lower one and must
// accept some candidate. So each round makes a pair, or a rank drops a friend.
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

// Words from or to a rank. In a round at most one letter goes from one rank to another.
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
    bool wants_more() const;
    void turn(bool any_wants_more);
    // Requires (both): done().
    std::size_t pairs() const {
        COCO_CHECK(done(), "pairs are counted when all rounds are over");
        return made_.sends.trades.size();
    }
    Combining take();

  private:
    enum class Stage : std::uint8_t { sources, choices, states, outcomes, done };
    enum class State : std::uint8_t { looking, paired, terminal };
    static constexpr std::int32_t kNobody = -1;

    // An active neighbour: one to which this rank still sends by itself.
    struct Outgoing {
        std::vector<Load> loads;
        std::vector<std::int32_t> sources;  // its active incoming neighbours: a row of the paper's matrix
        std::int32_t times = 0;             // how often it was onloaded
        std::int32_t level = 0;             // the level of its cargo
    };
    struct Friend {
        std::int32_t common;  // the number of common neighbours
        bool candidate = true, settled = false;
        std::int32_t choice = kNobody;  // whom this friend chose in the last round
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
    std::map<std::int32_t, std::vector<Load>> in_;  // by active incoming neighbour, what it will send here
    std::map<std::int32_t, Friend> friends_;
    Stage stage_ = Stage::sources;
    State state_ = State::terminal;
    bool settled_now_ = false;
    std::int32_t choice_ = kNobody;
    std::int32_t iteration_ = 0;
    Combining made_;
};

}  // namespace coco::schedule
