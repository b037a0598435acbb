// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     Bienz, Gropp, Olson, Reducing communication in algebraic multigrid with multi-step node aware
//             communication, 2020, and Namugwanya, Bienz, Schafer, Skjellum, Collective-optimized FFTs, 2023:
//             the node-aware alltoall
// Idea:       Each rank exchanges with its like on every other node: one message has all that it owes that
//             node, straight from its own buffer where the node's ranks are numbered in a row. The ranks of a
//             node then take their blocks from what their mates have received. In an allgather a message is
//             one block. So there are L times fewer messages than between all ranks, without a copy before
//             them, and all ranks of a node send. Ranks i, i + M, ... of a node go to rank i of one that has
//             only M.
// Needs:      nothing: any ranks, any nodes; scratch on the shared heap
// Steps:      N - 1 messages a rank each way, where nodes are alike, window= of them under way at once (4)
// Bytes:      per rank alltoall (N - 1) L blocks sent and P copied, allgather N - 1 sent and P copied
// Scratch:    alltoall L blocks and window + 2 messages, and window more where the ranks of some node are no
//             row; allgather one block and window + 2 messages
// Good for:   medium and large blocks with several ranks on a node
// Milestones: 1 + i: what comes from the nodes i + 1 places before has come, and all that came in the turns
//             before was taken
#include <algorithm>

#include "algorithms/blocks.h"
#include "algorithms/nodes.h"
#include "base/check.h"
#include "base/index.h"

namespace coco::algorithms {
namespace {

using schedule::Area;
using schedule::Milestone;
using schedule::Place;

constexpr std::int32_t kUsualWindow = 4;

class NodeAwareScheme {
  public:
    explicit NodeAwareScheme(const Shape& shape)
        : shape_(shape),
          nodes_(shape),
          turns_(nodes_.count() - 1),
          window_(shape.parameters.window != 0 ? shape.parameters.window : kUsualWindow) {
        lay_out();
    }

    schedule::Schedule take() {
        for (std::int32_t turn = 0; turn < std::min(window_, turns_); ++turn) start(turn);
        nodes_.exchange_within(steps_);
        for (std::int32_t turn = 0; turn < turns_; ++turn) {
            steps_.complete(started_behind(turn));
            if (is_awaited_in(turn)) steps_.raise(came_in(turn));
            if (turn + window_ < turns_) start(turn + window_);
            take_turn(turn);
        }
        return steps_.scratch(scratch_blocks_).raise(schedule::kDone).take();
    }

  private:
    static Milestone came_in(std::int32_t turn) { return 1 + static_cast<Milestone>(turn); }

    bool shares() const { return nodes_.own_size() > 1; }
    std::int32_t to_node(std::int32_t turn) const { return nodes_.at_distance(turn + 1); }
    std::int32_t from_node(std::int32_t turn) const { return nodes_.at_distance(-turn - 1); }
    // The blocks that a message to a node of so many ranks has.
    std::int32_t blocks_for(std::int32_t size) const { return personal_ ? size : 1; }
    // How many messages come to the rank of that index on this node from a node.
    std::int32_t messages_to(std::int32_t index_on_node, std::int32_t from) const {
        const std::int32_t size = nodes_.size_of(from);
        return size > index_on_node ? (size - index_on_node - 1) / nodes_.own_size() + 1 : 0;
    }

    bool receives(std::int32_t index_on_node, std::int32_t turn) const {
        return messages_to(index_on_node, from_node(turn)) != 0;
    }
    // Whether the rank of that index, once it is through with this turn, has a slot filled anew that its
    // mates have read in the turn before.
    bool will_refill(std::int32_t index_on_node, std::int32_t turn) const {
        const std::int32_t next = turn + 1 + window_;
        return turn > 0 && next < turns_ && receives(index_on_node, turn - 1) &&
               receives(index_on_node, next);
    }
    // Whether a mate waits until this rank has come so far.
    bool is_awaited_in(std::int32_t turn) const {
        if (!shares()) return false;
        bool awaited = receives(nodes_.index_on_node(), turn);
        for_mates([&](std::int32_t, std::int32_t index) { awaited |= will_refill(index, turn); });
        return awaited;
    }

    // What comes in a turn lies in one of window + 2 slots. A rank that starts a turn has taken all of the
    // turn two before the last that came, and waited for its mates to do the same: they use no slot that is
    // filled anew. At the bottom are the blocks for mates. What goes to ranks that are not numbered in a row
    // is packed in one of `window` slots.
    void lay_out() {
        bottom_ = nodes_.left_within();
        std::int32_t in = 0, out = 0;
        for (std::int32_t turn = 0; turn < turns_; ++turn) {
            in = std::max(in, messages_to(0, from_node(turn)) * blocks_for(nodes_.own_size()));
            if (packs_for(to_node(turn))) out = std::max(out, nodes_.size_of(to_node(turn)));
        }
        in_blocks_ = shares() ? in : 0;
        out_blocks_ = out;
        in_slots_ = std::min(window_ + 2, turns_);
        out_at_ = bottom_ + in_slots_ * in_blocks_;
        scratch_blocks_ = out_at_ + std::min(window_, turns_) * out_blocks_;
    }

    bool packs_for(std::int32_t node) const { return personal_ && !nodes_.is_a_row(node); }
    // Where what came in a turn lies on a rank of this node: messages by sender.
    Place incoming(std::int32_t rank, std::int32_t turn) const {
        return {rank, Area::scratch, bottom_ + turn % in_slots_ * in_blocks_};
    }

    void start(std::int32_t turn) {
        COCO_CHECK(turn >= 0 && turn < turns_, "there is a turn for each other node");
        const std::vector<std::int32_t>& senders = nodes_.ranks_of(from_node(turn));
        const std::int32_t blocks = blocks_for(nodes_.own_size());
        Place at = incoming(shape_.rank, turn);
        for (std::int32_t i = nodes_.index_on_node(); i < base::number(senders.size());
             i += nodes_.own_size()) {
            const std::int32_t sender = senders[base::index(i)];
            steps_.receive(sender, shares() ? at : received(sender, shape_.rank), blocks);
            at = behind(at, blocks);
        }
        send_to(to_node(turn), turn);
    }

    void send_to(std::int32_t node, std::int32_t turn) {
        const std::vector<std::int32_t>& ranks = nodes_.ranks_of(node);
        Place from = sent(shape_.exchange, shape_.rank, ranks.front());
        if (packs_for(node)) {
            from = {shape_.rank, Area::scratch, out_at_ + turn % window_ * out_blocks_};
            Place to = from;
            for (const std::int32_t receiver : ranks) {
                steps_.copy(sent(shape_.exchange, shape_.rank, receiver), to);
                to = behind(to, 1);
            }
        }
        steps_.send(ranks[base::index(nodes_.index_on_node() % nodes_.size_of(node))], from,
                    blocks_for(nodes_.size_of(node)));
    }

    // How many messages of later turns were started before this one is complete.
    std::int32_t started_behind(std::int32_t turn) const {
        std::int32_t messages = 0;
        for (std::int32_t later = turn + 1; later < std::min(turn + window_, turns_); ++later)
            messages += 1 + messages_to(nodes_.index_on_node(), from_node(later));
        return messages;
    }

    // Calls use(mate, its index) for the mates, beginning with the one behind this rank.
    template <class Use>
    void for_mates(Use use) const {
        for (std::int32_t i = 1; i < nodes_.own_size(); ++i) {
            const std::int32_t index = (nodes_.index_on_node() + i) % nodes_.own_size();
            use(nodes_.own_ranks()[base::index(index)], index);
        }
    }

    // Takes this rank's blocks from all that came to the ranks of its node in a turn.
    void take_turn(std::int32_t turn) {
        if (!shares()) return;
        take_from(shape_.rank, nodes_.index_on_node(), turn);
        for_mates([&](std::int32_t mate, std::int32_t index) {
            if (receives(index, turn) || will_refill(nodes_.index_on_node(), turn))
                steps_.wait(mate, came_in(turn));
            take_from(mate, index, turn);
        });
    }
    void take_from(std::int32_t mate, std::int32_t index_on_node, std::int32_t turn) {
        const std::vector<std::int32_t>& senders = nodes_.ranks_of(from_node(turn));
        Place at = behind(incoming(mate, turn), personal_ ? nodes_.index_on_node() : 0);
        for (std::int32_t i = index_on_node; i < base::number(senders.size()); i += nodes_.own_size()) {
            steps_.copy(at, received(senders[base::index(i)], shape_.rank));
            at = behind(at, blocks_for(nodes_.own_size()));
        }
    }

    const Shape& shape_;
    const Nodes nodes_;
    const bool personal_ = shape_.exchange == Exchange::alltoall;
    const std::int32_t turns_, window_;
    schedule::Builder steps_;
    std::int32_t bottom_ = 0, in_slots_ = 0, in_blocks_ = 0, out_at_ = 0, out_blocks_ = 0,
                 scratch_blocks_ = 0;
};

}  // namespace

schedule::Schedule make_node_aware(const Shape& shape) { return NodeAwareScheme(shape).take(); }

}  // namespace coco::algorithms
