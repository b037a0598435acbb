// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     libcoco's own, after the leader schemes of Li, Zhang, Hoefler 2018, section 2.5; nodes
//             combine after Mirsadeghi, Traeff, Balaji, Afsahi 2017
// Idea:       What the ranks of a node owe those of another goes as one message, a bundle, and in an
//             allgather a block that several ranks there want crosses the network once. With a threshold
//             nodes combine their bundles as ranks combine blocks in combining. How:
//             docs/design/neighbors.md.
// Needs:      nothing: any ranks, any nodes; scratch on the shared heap
// Steps:      between two nodes with edges a message; all of a leader at once. Combined: for each pair of
//             leaders k / 2 + 1 messages instead of k; a wait for each level of trades
// Bytes:      between two nodes a block for each edge; allgather: for each sender with edges between them.
//             Per rank two copies of what it sends, one of what it receives. Combined: once more for what
//             is given away, in an allgather each block once in a trade; and one copy by the leader
// Scratch:    per rank its blocks for mates, and the bundles that it leads; combined: what it takes over
//             and packs
// Good for:   small and medium blocks, many edges between two nodes; combined: small blocks, many nodes to
//             each of few leaders
// Milestones: 1: all that this rank owes other nodes lies with their leaders; 2, 3, ..., raised by leaders:
//             the bundle of one more turn has come
#include <map>
#include <span>

#include "algorithms/carried.h"
#include "algorithms/nodes.h"
#include "schedule/bundles.h"

namespace coco::algorithms {
namespace {

using schedule::Area;
using schedule::Bundle;
using schedule::Bundled;
using schedule::Cargo;
using schedule::Edge;
using schedule::kArrived;
using schedule::kDone;
using schedule::Load;
using schedule::Milestone;
using schedule::Place;

class AggregateScheme {
  public:
    explicit AggregateScheme(const Shape& shape) : shape_(shape), all_(*shape.bundles) {
        for (const Bundle& bundle : all_.outgoing) own_bundle(bundle);
    }

    schedule::Schedule take() {
        stage();
        if (shares_) steps_.raise(kArrived);
        if (all_.sends.trades.empty()) receive();
        fill();
        if (fills_others_) steps_.raise(kFilled);
        carried_.carry(
            all_.sends, [this](auto cargoes) { await_fillers(cargoes); }, [this] { return receive(); });
        take_from_mates();
        show();
        take_from_other_nodes();
        steps_.complete();
        return steps_.scratch(scratch_.end()).raise(kDone).take();
    }

  private:
    Place own(std::int32_t index) const { return {shape_.rank, Area::scratch, index}; }
    std::int32_t block_of(std::int32_t sent) const { return personal_ ? sent : 0; }
    bool is_other_mate(std::int32_t rank) const {
        return rank >= 0 && rank != shape_.rank &&
               shape_.map->node[static_cast<std::size_t>(rank)] ==
                   shape_.map->node[static_cast<std::size_t>(shape_.rank)];
    }

    // Copies the blocks for mates to scratch, each to its index in the send area; in an allgather there is
    // one.
    void stage() {
        const auto& destinations = shape_.neighborhood->destinations;
        for (std::int32_t i = 0; i < shape_.neighborhood->send_blocks(); ++i) {
            if (!is_other_mate(destinations[static_cast<std::size_t>(i)])) continue;
            steps_.copy({shape_.rank, Area::send, block_of(i)}, own(block_of(i)));
            if (!personal_) return;
        }
    }

    void fill() {
        for (const Bundled& b : all_.filled) {
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

    void own_bundle(const Bundle& bundle) {
        std::int32_t at = bundle.first;
        for (const Load& load : bundle.loads)
            for (std::int32_t i = 0; i < load.blocks; ++i) carried_.own(bundle.peer, load.origin, own(at++));
        fillers_[bundle.peer] = &bundle.fillers;
    }

    // Starts to receive the incoming bundles. Returns: the number of their messages.
    std::int32_t receive() {
        for (; received_ < all_.incoming.size(); ++received_) {
            const Bundle& b = all_.incoming[received_];
            steps_.receive(b.peer, own(b.first), b.blocks);
        }
        return static_cast<std::int32_t>(received_);
    }

    void await_fillers(std::span<const Cargo> cargoes) {
        for (const Cargo& cargo : cargoes)
            if (auto of = fillers_.find(cargo.rank); of != fillers_.end())
                for (std::int32_t mate : *of->second) filled_.await(steps_, mate);
    }

    void raise_bundle(std::int32_t turn) {
        if (shares_) steps_.raise(kFirstBundle + static_cast<Milestone>(turn));
    }
    // Shows each incoming bundle to the mates as soon as it has come. A rank waits for bundles of other
    // leaders only when all of its own have come.
    void show() {
        auto messages = static_cast<std::int32_t>(all_.incoming.size() + all_.sends.cargoes.size());
        for (const Bundle& bundle : all_.incoming) {
            steps_.complete(--messages);
            raise_bundle(bundle.turn);
        }
    }

    void take_from_other_nodes() {
        std::map<std::int32_t, std::int32_t> seen;  // by leader: how many of its bundles were waited for
        for (const Bundled& b : all_.taken) {
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
    const bool shares_ =
        shape_.map->ranks_on_node(shape_.map->node[static_cast<std::size_t>(shape_.rank)]).size() > 1;
    bool fills_others_ = false;
    schedule::Builder steps_;
    ScratchBlocks scratch_{shape_.rank, all_.scratch_blocks};
    Carried carried_{personal_, steps_, scratch_};
    std::map<std::int32_t, const std::vector<std::int32_t>*> fillers_;  // by the peer of the bundle
    std::size_t received_ = 0;  // how many incoming bundles were asked for
    Waits arrivals_{shape_.rank, kArrived}, filled_{shape_.rank, kFilled};
};

}  // namespace

schedule::Schedule make_aggregate(const Shape& shape) { return AggregateScheme(shape).take(); }

}  // namespace coco::algorithms
