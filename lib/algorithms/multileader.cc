// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     libcoco's own, after the leader schemes of Li, Zhang, Hoefler 2018, section 2.5
// Idea:       As leader, but several ranks of a node, by default all, share the other nodes between them:
//             leader (i - 1) mod leaders speaks to the node i places on. So the packing, sending and
//             receiving of a node's bundles is spread over its ranks. Each rank takes its blocks from all
//             leaders of its node, while more comes. In an allgather each leader has a copy of the node's
//             bundle.
// Needs:      nothing: any ranks, any nodes; scratch on the shared heap
// Steps:      between two nodes a message each way; per leader (N - 1) / leaders of them, 4 to 16 at once,
//             in allgather 2 to 16; v forms: as sloav's where much is sent at once, or long blocks
// Bytes:      alltoall between two nodes of L ranks L x L blocks, allgather L; per rank 2 P blocks copied
//             (allgather P + L); v forms: heads and lengths as leader's
// Scratch:    alltoall per leader 2 L P / leaders blocks and L, others L; allgather per leader P / leaders,
//             L and 1, others 1
// Good for:   small and medium blocks with several ranks on a node
// Milestones: 1, alltoall: all that this rank owes others lies in scratch; 2, 3, ..., raised by leaders:
//             one more bundle has come
#include <algorithm>

#include "algorithms/blocks.h"
#include "algorithms/nodes.h"
#include "base/check.h"
#include "base/index.h"

namespace coco::algorithms {
namespace {

using schedule::Area;
using schedule::Builder;
using schedule::Milestone;
using schedule::Place;

// How many pairs of messages are under way at once: of a node, and at least of a leader. In a gather they are
// fewer, so that what has come is copied while more comes.
constexpr std::int32_t kNodeWindow = 16, kLeastWindow = 4, kLeastGatherWindow = 2;

class MultileaderScheme {
  public:
    explicit MultileaderScheme(const Shape& shape) : shape_(shape), nodes_(shape) { lay_out(); }

    schedule::Schedule take() {
        personal_ ? fill() : gather();
        copy_block(steps_, shape_.exchange, shape_.rank, shape_.rank);
        exchange();
        return steps_.scratch(scratch_).raise(schedule::kDone).take();
    }

  private:
    // The two nodes at one distance, behind and before this one, and the rank of this node that speaks to
    // them.
    struct Partner {
        std::int32_t to, from;
        std::int32_t leader, to_leader, from_leader;  // ranks
        std::int32_t turn;         // with how many partners its leader exchanges before this one
        Place outgoing, incoming;  // in the leader's scratch
    };

    std::int32_t leaders_of(std::int32_t node) const {
        COCO_CHECK(shape_.parameters.leaders >= 0, "a number of leaders is a count");
        std::int32_t wanted = shape_.parameters.leaders, size = nodes_.size_of(node);
        return wanted == 0 ? size : std::min(wanted, size);
    }
    std::int32_t leader_for(std::int32_t node, std::int32_t distance) const {
        COCO_CHECK(distance >= 1, "leaders speak to other nodes");
        return nodes_.ranks_of(node)[base::index((distance - 1) % leaders_of(node))];
    }
    std::int32_t out(const Partner& p) const {
        return personal_ ? nodes_.own_size() * nodes_.size_of(p.to) : nodes_.own_size();
    }
    std::int32_t in(const Partner& p) const {
        return personal_ ? nodes_.own_size() * nodes_.size_of(p.from) : nodes_.size_of(p.from);
    }

    // Lays out the scratch of this node's ranks. At the bottom are the blocks for mates; in an allgather that
    // is one block, and a leader has the bundle of its node behind it.
    void lay_out() {
        std::int32_t count = nodes_.count(), leaders = leaders_of(nodes_.own());
        std::int32_t bottom = nodes_.own_size() + (personal_ ? 0 : 1);
        std::vector<std::int32_t> next(base::index(leaders), bottom);
        for (std::int32_t i = 1; i < count; ++i) {
            std::int32_t to = (nodes_.own() + i) % count, from = (nodes_.own() - i + count) % count;
            std::int32_t leader = leader_for(nodes_.own(), i), turn = (i - 1) / leaders;
            Partner p{to, from, leader, leader_for(to, i), leader_for(from, i), turn, {}, {}};
            std::int32_t& at = next[base::index((i - 1) % leaders)];
            p.outgoing = {leader, Area::scratch, personal_ ? at : 1};
            at += personal_ ? out(p) : 0;
            p.incoming = {leader, Area::scratch, at};
            at += in(p);
            if (leader == shape_.rank) own_.push_back(i - 1);
            partners_.push_back(p);
        }
        std::int32_t least = personal_ ? nodes_.own_size() : 1;
        scratch_ = leads() ? next[base::index(nodes_.index_on_node())] : least;
    }

    void fill() {
        if (shares()) steps_.raise(schedule::kArrived);
        for (const Partner& p : partners_) {
            arrivals_.await(steps_, p.leader);
            nodes_.fill_row(steps_, p.to, p.outgoing, nodes_.index_on_node());
        }
        nodes_.leave_for_mates(steps_);
        if (shares()) steps_.raise(kFilled);
    }

    void gather() {
        const Place own_block = sent(shape_.exchange, shape_.rank, shape_.rank);
        if (shares()) steps_.copy(own_block, left_by(shape_.rank)).raise(schedule::kArrived);
        if (!leads()) return;
        steps_.copy(own_block, {shape_.rank, Area::scratch, 1 + nodes_.index_on_node()});
        for_mates([&](std::int32_t mate, std::int32_t index_on_node) {
            steps_.copy(left_by(mate), {shape_.rank, Area::scratch, 1 + index_on_node});
        });
    }
    // Allgather: the place where a rank leaves its block for its mates.
    static Place left_by(std::int32_t rank) { return {rank, Area::scratch, 0}; }
    template <class Use>
    void for_mates(Use use) {
        for (std::int32_t i = 1; i < nodes_.own_size(); ++i) {
            std::int32_t index_on_node = (nodes_.index_on_node() + i) % nodes_.own_size();
            std::int32_t mate = nodes_.own_ranks()[base::index(index_on_node)];
            arrivals_.await(steps_, mate);
            use(mate, index_on_node);
        }
    }

    // All ranks go through the distances upwards. They start their own messages of a distance before they
    // wait for a mate to receive those of that distance, so no two ranks wait for each other.
    void exchange() {
        for (std::int32_t mate : nodes_.own_ranks())
            if (personal_ && leads()) filled_.await(steps_, mate);
        const std::int32_t least = personal_ ? kLeastWindow : kLeastGatherWindow;
        std::size_t window = std::max(kNodeWindow / leaders_of(nodes_.own()), least);
        for (std::size_t i = 0; i < std::min(window, own_.size()); ++i) start(partners_[own_[i]]);
        take_from_mates();
        for (std::size_t i = 0; i < own_.size(); ++i) {
            steps_.complete(base::number(2 * (std::min(own_.size(), i + window) - i - 1)));
            if (shares()) steps_.raise(kFirstBundle + static_cast<Milestone>(i));
            if (i + window < own_.size()) start(partners_[own_[i + window]]);
            take_up_to(own_[i]);
        }
        take_up_to(std::ssize(partners_) - 1);
    }
    void start(const Partner& p) {
        steps_.receive(p.from_leader, p.incoming, in(p));
        steps_.send(p.to_leader, p.outgoing, out(p));
    }
    void take_from_mates() {
        if (personal_) return nodes_.take_from_mates(steps_, {&arrivals_, &filled_});
        for_mates([&](std::int32_t mate, std::int32_t) {
            steps_.copy(left_by(mate), received(mate, shape_.rank));
        });
    }
    // Takes this rank's blocks from the bundles of all partners up to `last` that it has not taken before.
    void take_up_to(std::ptrdiff_t last) {
        COCO_CHECK(last < std::ssize(partners_), "blocks come from partners");
        for (; taken_ <= last; ++taken_) {
            const Partner& p = partners_[base::index(taken_)];
            if (p.leader != shape_.rank) steps_.wait(p.leader, kFirstBundle + static_cast<Milestone>(p.turn));
            nodes_.take_blocks(steps_, nodes_.ranks_of(p.from), p.incoming);
        }
    }

    bool shares() const { return nodes_.own_size() > 1; }
    bool leads() const { return !own_.empty(); }

    const Shape& shape_;
    const Nodes nodes_;
    const bool personal_ = shape_.exchange == Exchange::alltoall;
    Builder steps_;
    std::vector<Partner> partners_;  // by distance, from 1
    std::vector<std::int32_t> own_;  // indices of the partners to which this rank speaks
    std::ptrdiff_t taken_ = 0;
    Waits arrivals_{shape_.rank, schedule::kArrived}, filled_{shape_.rank, kFilled};
    std::int32_t scratch_ = 0;
};

}  // namespace

schedule::Schedule make_multileader(const Shape& shape) { return MultileaderScheme(shape).take(); }

}  // namespace coco::algorithms
