// SPDX-License-Identifier: BSD-3-Clause
//
// Source:   libcoco's own, after the leader schemes of Li, Zhang, Hoefler 2018, section 2.5
// Idea:     As leader, but several ranks of a node, by default all, speak for it, each to its share of the
//           other nodes: the node i places on is the partner of leader (i - 1) mod leaders. So the packing,
//           sending and receiving of a node's bundles is spread over its ranks.
// Needs:    nothing: any ranks, any nodes; scratch on the shared heap
// Steps:    between two nodes a message each way; per leader (N - 1) / leaders of them, 16 at once
// Bytes:    between two nodes of L ranks L x L blocks; per rank 2 P blocks copied
// Scratch:  per leader 2 L P / leaders blocks and L; others L
// Good for: small and medium blocks with several ranks on a node and few nodes
//
// Milestones: 1: all that this rank owes others lies in scratch; 2, by leaders: their bundles are there.
#include <algorithm>

#include "algorithms/blocks.h"
#include "algorithms/nodes.h"

namespace coco::algorithms {
namespace {

using schedule::Area;
using schedule::Builder;
using schedule::Place;

constexpr schedule::Milestone kFilled = 1, kThere = 2;
constexpr std::int32_t kWindow = 16;  // pairs of messages at once

class Scheme {
  public:
    explicit Scheme(const Shape& shape) : shape_(shape), nodes_(shape) { lay_out(); }

    schedule::Schedule take() {
        bool shares = nodes_.own_size() > 1;
        bool leads =
            std::ranges::any_of(partners_, [&](const Partner& p) { return p.leader == shape_.rank; });
        if (shares) steps_.raise(schedule::kArrived);
        for (const Partner& p : partners_) {
            arrivals_.await(steps_, p.leader);
            nodes_.fill_row(steps_, p.to, p.outgoing);
        }
        nodes_.leave_for_mates(steps_);
        if (shares) steps_.raise(kFilled);
        copy_block(steps_, shape_.exchange, shape_.rank, shape_.rank);
        if (leads) exchange();
        nodes_.take_from_mates(steps_, {&arrivals_, &filled_});
        for (const Partner& p : partners_) {
            there_.await(steps_, p.leader);
            nodes_.take_column(steps_, p.from, p.incoming);
        }
        return steps_.scratch(scratch_).raise(schedule::kDone).take();
    }

  private:
    // The nodes at one distance, before and behind, and who of this node speaks to them.
    struct Partner {
        std::int32_t to, from;
        std::int32_t leader, to_leader, from_leader;  // ranks
        Place outgoing, incoming;                     // in the leader's scratch
    };

    std::int32_t leader_for(std::int32_t node, std::int32_t distance) const {
        std::int32_t wanted = shape_.parameters.leaders, size = nodes_.size_of(node);
        std::int32_t leaders = wanted == 0 ? size : std::min(wanted, size);
        return nodes_.ranks_of(node)[static_cast<std::size_t>((distance - 1) % leaders)];
    }

    void lay_out() {
        std::vector<std::int32_t> next(static_cast<std::size_t>(shape_.map->ranks()), nodes_.own_size());
        std::int32_t count = nodes_.count(), size = nodes_.own_size();
        for (std::int32_t i = 1; i < count; ++i) {
            std::int32_t to = (nodes_.own() + i) % count, from = (nodes_.own() - i + count) % count;
            std::int32_t leader = leader_for(nodes_.own(), i);
            std::int32_t& at = next[static_cast<std::size_t>(leader)];
            std::int32_t out = size * nodes_.size_of(to), in = size * nodes_.size_of(from);
            partners_.push_back({to,
                                 from,
                                 leader,
                                 leader_for(to, i),
                                 leader_for(from, i),
                                 {leader, Area::scratch, at},
                                 {leader, Area::scratch, at + out}});
            at += out + in;
        }
        scratch_ = next[static_cast<std::size_t>(shape_.rank)];
    }

    void exchange() {
        for (std::int32_t mate : nodes_.mates()) filled_.await(steps_, mate);
        std::int32_t pairs = 0;
        for (const Partner& p : partners_) {
            if (p.leader != shape_.rank) continue;
            std::int32_t size = nodes_.own_size();
            steps_.receive(p.from_leader, p.incoming, size * nodes_.size_of(p.from));
            steps_.send(p.to_leader, p.outgoing, size * nodes_.size_of(p.to));
            if (++pairs >= kWindow) steps_.complete(2 * (kWindow - 1));
        }
        steps_.complete(0);
        if (nodes_.own_size() > 1) steps_.raise(kThere);
    }

    const Shape& shape_;
    const Nodes nodes_;
    Builder steps_;
    std::vector<Partner> partners_;
    Waits arrivals_{shape_.rank, schedule::kArrived}, filled_{shape_.rank, kFilled};
    Waits there_{shape_.rank, kThere};
    std::int32_t scratch_ = 0;
};

}  // namespace

schedule::Schedule make_multileader(const Shape& shape) { return Scheme(shape).take(); }

}  // namespace coco::algorithms
