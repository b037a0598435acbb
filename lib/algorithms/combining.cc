// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     Mirsadeghi, Traeff, Balaji, Afsahi 2017, algorithm 3. The pattern (algorithm 1) is made
//             by schedule/combining.h. Beyond the paper, a neighbour may be shared `depth` times.
// Idea:       Two ranks with at least `threshold` neighbours in common on other nodes each give the other
//             what they owe half of these, and send to the other half for both: k / 2 + 1 messages instead
//             of k. How, and why in levels: docs/neighbors.md. Edges within a node go as in eager,
//             as a copy costs less than a share of a message.
// Needs:      several nodes, and all ranks to run it: no other algorithm understands its messages. The
//             first call makes the pattern, in rounds of letters
// Steps:      per rank k / 2 + 1 messages instead of k for each pair; a wait for each level of trades
//             (depth 1: one), and one for what arrives
// Bytes:      per rank what its neighbours get, and once more for each half that was given away. Blocks
//             above 4 KiB go straight, one message for each edge
// Scratch:    what was taken over, what is packed to be sent, and what came for several edges
// Good for:   small blocks and many neighbours in common
#include <algorithm>
#include <span>

#include "algorithms/carried.h"
#include "algorithms/edges.h"
#include "base/check.h"
#include "base/index.h"

namespace coco::algorithms {
namespace {

using schedule::Area;
using schedule::Cargo;
using schedule::Edge;
using schedule::kArrived;
using schedule::kDone;
using schedule::Load;
using schedule::Place;

// The messages from other nodes, and the copies that are needed when they have come.
class Arriving {
  public:
    Arriving(const Shape& shape, EdgeWalk& walk, ScratchBlocks& scratch)
        : shape_(shape), walk_(walk), scratch_(scratch), personal_(shape.exchange == Exchange::alltoall) {}

    void receive(const Cargo& cargo) {
        COCO_CHECK(!cargo.loads.empty(), "cargo has loads");
        std::int32_t blocks = blocks_in(cargo, personal_);
        Place at = blocks == 1 ? target(shape_.neighborhood->incoming_from(cargo.loads[0].origin)[0])
                               : scratch_.take(blocks);
        walk_.steps.receive(cargo.rank, at, blocks);
        for (const Load& load : cargo.loads) {
            const auto edges = shape_.neighborhood->incoming_from(load.origin);
            COCO_CHECK(!edges.empty(), "what comes has an edge to come along");
            COCO_CHECK(!personal_ || std::ssize(edges) == load.blocks, "a load has a block for each edge");
            // In an allgather all edges from an origin bring the same block.
            for (const Edge& edge : edges) {
                if (at != target(edge)) copies_.emplace_back(at, target(edge));
                if (personal_) at = behind(at, 1);
            }
            if (!personal_) at = behind(at, 1);
        }
    }
    void copy() {
        for (const auto& [from, to] : copies_) walk_.steps.copy(from, to);
    }

  private:
    Place target(const Edge& edge) const { return {shape_.rank, Area::recv, edge.received}; }

    const Shape& shape_;
    EdgeWalk& walk_;
    ScratchBlocks& scratch_;
    const bool personal_;
    std::vector<std::pair<Place, Place>> copies_;
};

class Combined {
  public:
    explicit Combined(const Shape& shape)
        : walk_(shape),
          arrivals_scratch_(shape.rank, walk_.send_extent()),
          scratch_(shape.rank, walk_.send_extent() + arriving_blocks(shape)),
          carried_(shape.exchange == Exchange::alltoall, walk_.steps, scratch_),
          arriving_(shape, walk_, arrivals_scratch_),
          shape_(shape) {
        own();
    }

    schedule::Schedule make() {
        if (shape_.combined_receives == nullptr) walk_.receive_from_other_nodes();
        walk_.fill_scratch();
        if (!shape_.share->touching.empty()) walk_.steps.raise(kArrived);
        if (shape_.combined_sends == nullptr) walk_.send_to_other_nodes();
        carry();
        COCO_CHECK(arrivals_scratch_.end() == walk_.send_extent() + arriving_blocks(shape_),
                   "what comes fills its part of the scratch");
        walk_.copy_staged_share();
        walk_.steps.complete();
        arriving_.copy();
        return walk_.steps.scratch(scratch_.end()).raise(kDone).take();
    }

  private:
    void own() {
        const auto& destinations = shape_.neighborhood->destinations;
        for (std::int32_t i = 0; i < shape_.neighborhood->send_blocks(); ++i)
            if (std::int32_t to = destinations[base::index(i)]; walk_.is_on_other_node(to))
                carried_.own(to, shape_.rank, {shape_.rank, Area::send, walk_.block_of(i)});
    }
    static std::int32_t arriving_blocks(const Shape& shape) {
        if (shape.combined_receives == nullptr) return 0;
        return blocks_arriving(*shape.combined_receives, shape.exchange == Exchange::alltoall);
    }

    void carry() {
        static const schedule::CombinedSends kNone;
        carried_.carry(
            shape_.combined_sends != nullptr ? *shape_.combined_sends : kNone, [](auto) {},
            [this] { return receive(); });
    }
    std::int32_t receive() {
        if (shape_.combined_receives == nullptr) return 0;
        const auto& arrivals = shape_.combined_receives->arrivals;
        for (const Cargo& cargo : arrivals) arriving_.receive(cargo);
        return base::number(arrivals.size());
    }

    EdgeWalk walk_;
    ScratchBlocks arrivals_scratch_, scratch_;
    Carried carried_;
    Arriving arriving_;
    const Shape& shape_;
};

}  // namespace

schedule::Schedule make_combining(const Shape& shape) {
    COCO_CHECK(shape.neighborhood != nullptr && shape.share != nullptr,
               "neighbours combine what they know of");
    return Combined(shape).make();
}

}  // namespace coco::algorithms
