// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     libcoco's own, after the leader schemes of Li, Zhang, Hoefler 2018, section 2.5
// Idea:       What the ranks of a node owe those of another goes as one message, a bundle, and in an
//             allgather a block that several ranks there want crosses the network once. How:
//             docs/neighbors.md.
// Needs:      nothing: any ranks, any nodes; scratch on the shared heap
// Steps:      between two nodes with edges a message; all of a leader at once
// Bytes:      between two nodes a block for each edge; allgather: for each sender with edges between them.
//             Per rank two copies of what it sends, one of what it receives
// Scratch:    per rank its blocks for mates, and the bundles that it leads
// Good for:   small and medium blocks, many edges between two nodes
// Milestones: 1: all that this rank owes other nodes lies with their leaders; 2, 3, ..., raised by leaders:
//             the bundle of one more turn has come
#include <map>

#include "algorithms/nodes.h"
#include "base/check.h"
#include "base/index.h"
#include "schedule/bundles.h"

namespace coco::algorithms {
namespace {

using schedule::Area;
using schedule::Bundle;
using schedule::Bundled;
using schedule::Edge;
using schedule::kArrived;
using schedule::kDone;
using schedule::Milestone;
using schedule::Place;

class AggregateScheme {
  public:
    explicit AggregateScheme(const Shape& shape) : shape_(shape), all_(*shape.bundles) {}

    schedule::Schedule take() {
        stage();
        if (shares_) steps_.raise(kArrived);
        for (const Bundle& bundle : all_.incoming)
            steps_.receive(bundle.peer, own(bundle.first), bundle.blocks);
        fill();
        if (fills_others_) steps_.raise(kFilled);
        for (const Bundle& bundle : all_.outgoing) send(bundle);
        take_from_mates();
        show();
        take_from_other_nodes();
        steps_.complete();
        return steps_.scratch(all_.scratch_blocks).raise(kDone).take();
    }

  private:
    Place own(std::int32_t index) const {
        COCO_CHECK(index >= 0 && index < all_.scratch_blocks, "a bundle lies in the scratch of its leader");
        return {shape_.rank, Area::scratch, index};
    }
    std::int32_t block_of(std::int32_t sent) const { return personal_ ? sent : 0; }
    bool is_other_mate(std::int32_t rank) const {
        return rank >= 0 && rank != shape_.rank &&
               shape_.map->node[base::index(rank)] == shape_.map->node[base::index(shape_.rank)];
    }

    // Copies the blocks for mates to scratch, each to its index in the send area; in an allgather there is
    // one.
    void stage() {
        const auto& destinations = shape_.neighborhood->destinations;
        for (std::int32_t i = 0; i < shape_.neighborhood->send_blocks(); ++i) {
            if (!is_other_mate(destinations[base::index(i)])) continue;
            steps_.copy({shape_.rank, Area::send, block_of(i)}, own(block_of(i)));
            if (!personal_) return;
        }
    }

    void fill() {
        for (const Bundled& b : all_.filled) {
            COCO_CHECK(b.leader == shape_.rank || is_other_mate(b.leader),
                       "a bundle is filled by the node of its leader");
            arrivals_.await(steps_, b.leader);
            steps_.copy({shape_.rank, Area::send, block_of(b.edge.sent)}, {b.leader, Area::scratch, b.index});
            fills_others_ = fills_others_ || b.leader != shape_.rank;
        }
    }

    void take_from_mates() {
        for (const Edge& edge : shape_.share->edges) {
            arrivals_.await(steps_, edge.sender);
            Area from = edge.sender == shape_.rank ? Area::send : Area::scratch;
            steps_.copy({edge.sender, from, block_of(edge.sent)}, {shape_.rank, Area::recv, edge.received});
        }
    }

    void send(const Bundle& bundle) {
        for (std::int32_t mate : bundle.fillers) filled_.await(steps_, mate);
        steps_.send(bundle.peer, own(bundle.first), bundle.blocks);
    }

    void raise_bundle(std::int32_t turn) {
        if (shares_) steps_.raise(kFirstBundle + static_cast<Milestone>(turn));
    }
    // Shows each incoming bundle to the mates as soon as it has come. A rank waits for bundles of other
    // leaders only when all of its own have come.
    void show() {
        auto messages = base::number(all_.incoming.size() + all_.outgoing.size());
        for (const Bundle& bundle : all_.incoming) {
            steps_.complete(--messages);
            raise_bundle(bundle.turn);
        }
    }

    void take_from_other_nodes() {
        std::map<std::int32_t, std::int32_t> seen;  // by leader: how many of its bundles were waited for
        for (const Bundled& b : all_.taken) {
            COCO_CHECK(b.leader == shape_.rank || is_other_mate(b.leader),
                       "a bundle is emptied by the node of its leader");
            COCO_CHECK(b.turn >= 0, "a bundle that comes has a turn");
            if (b.leader != shape_.rank && seen[b.leader] <= b.turn) {
                arrivals_.await(steps_, b.leader);
                steps_.wait(b.leader, kFirstBundle + static_cast<Milestone>(b.turn));
                seen[b.leader] = b.turn + 1;
            }
            steps_.copy({b.leader, Area::scratch, b.index}, {shape_.rank, Area::recv, b.edge.received});
        }
    }

    const Shape& shape_;
    const schedule::Bundles& all_;
    const bool personal_ = shape_.exchange == Exchange::alltoall;
    const bool shares_ = shape_.map->ranks_on_node(shape_.map->node[base::index(shape_.rank)]).size() > 1;
    bool fills_others_ = false;
    schedule::Builder steps_;
    Waits arrivals_{shape_.rank, kArrived}, filled_{shape_.rank, kFilled};
};

}  // namespace

schedule::Schedule make_aggregate(const Shape& shape) {
    COCO_CHECK(shape.neighborhood != nullptr && shape.share != nullptr,
               "nodes aggregate what neighbours know of");
    COCO_CHECK(shape.bundles != nullptr, "nodes aggregate where bundles were made");
    return AggregateScheme(shape).take();
}

}  // namespace coco::algorithms
