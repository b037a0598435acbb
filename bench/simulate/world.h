// SPDX-License-Identifier: BSD-3-Clause
//
// The state that the simulated ranks of a run share: where they sit, how far each has come in a call, where
// its areas are. All ranks are coroutines of one thread of one process whose globals are not made private, so
// plain memory is shared memory; but a rank that waits must sleep in SimGrid, as no other runs meanwhile.
#pragma once
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <simgrid/s4u.hpp>
#include <vector>

#include "algorithms/algorithm.h"
#include "cpus.h"
#include "graph.h"
#include "schedule/schedule.h"
#include "setup.h"
#include "topology/node_map.h"

namespace simulate {

// The costs that SimGrid does not know: the work of a rank on its node, in seconds.
struct Costs {
    double copy_s = 5e-9;        // to start a copy of blocks in a row
    double byte_s = 1.0 / 10e9;  // to copy a byte
    double element_s = 3e-9;     // v forms: to copy an element, or to write or read its length
    double flag_s = 150e-9;      // until a raised flag is seen by a mate
    double raise_s = 20e-9;      // to raise a flag
    // The work of small messages, where it is computed instead of simulated: as machine.py tells SMPI.
    double send_s = 300e-9, receive_s = 200e-9;
};

// Buffers of one rank, by area; null where nothing is moved.
struct Areas {
    std::byte* at(coco::schedule::Area area) const { return of[static_cast<int>(area)].get(); }
    void make(coco::schedule::Area area, std::int64_t bytes) {
        of[static_cast<int>(area)].reset(bytes == 0 ? nullptr
                                                    : new std::byte[static_cast<std::size_t>(bytes)]);
    }
    std::unique_ptr<std::byte[]> of[coco::schedule::kAreas];
};

// v forms: the block that one rank owes another. Its length follows from both (World::bytes_of).
struct Element {
    std::int32_t sender = -1, receiver = -1;
    friend bool operator==(const Element&, const Element&) = default;
};
using Elements = std::vector<Element>;

class Rank {
  public:
    Rank() : wake_(simgrid::s4u::Semaphore::create(0)) {}

    // Called by this rank: it is at `milestone` at `time`, perhaps a little in the future.
    void raise(coco::schedule::Milestone milestone, double time);
    // Called by `waiter`: sleeps until this rank has come to `milestone`. Returns: when it came.
    double wait(Rank& waiter, coco::schedule::Milestone milestone);
    void begin() { raised_.clear(); }

    Areas areas;
    Elements table, received;                             // v forms: scratch and recv
    std::map<std::int32_t, std::deque<Elements>> coming;  // v forms: in messages to this rank, by sender
    std::int64_t scratch_blocks = 0;                      // of its schedule
    double scheduling_s = 0;                              // neighbours: real CPU time to make that

  private:
    struct Raised {
        coco::schedule::Milestone milestone;
        double time;
    };
    struct Waiting {
        Rank* rank;
        coco::schedule::Milestone milestone;
    };
    const Raised* find(coco::schedule::Milestone milestone) const;

    std::vector<Raised> raised_;
    std::vector<Waiting> waiting_;
    simgrid::s4u::SemaphorePtr wake_;
};

// alltoallv: how long the blocks of a call are whose longest has World::block_bytes.
enum class Counts : std::uint8_t { equal, uneven, sparse };

struct World {
    World(int ranks, int per_node);
    // v forms: of the block that `sender` owes `receiver`.
    std::int64_t bytes_of(Element element) const;

    coco::algorithms::Collective collective = coco::algorithms::Collective::alltoall;
    Counts counts = Counts::equal;
    int ranks, per_node;
    coco::topology::NodeMap map;
    Costs costs;
    std::unique_ptr<Cpus> cpus;  // null: messages cost what SMPI's settings say
    std::vector<Rank> rank;
    // Neighbours; else null.
    std::unique_ptr<Graph> graph;
    std::unique_ptr<Setup> setup;
    simgrid::s4u::BarrierPtr barrier;  // takes no simulated time

    // State of the measurement under way.
    std::int64_t block_bytes = 0;
    bool moves = true;           // blocks are really moved, and looked at in the end
    std::vector<std::byte> any;  // where messages come from and go to when they are not
    double last_end = 0;         // simulated
    std::int64_t wrong = 0;      // blocks
    std::int64_t steps = 0, messages = 0, message_bytes = 0;
};

}  // namespace simulate
