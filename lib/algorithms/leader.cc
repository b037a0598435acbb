// SPDX-License-Identifier: BSD-3-Clause
//
// Source:   Li, Zhang, Hoefler, Cache-Oblivious MPI All-to-All Communications Based on Morton Order, TPDS
//           2018, section 2.5: pack on the node, exchange among leaders, unpack on the node; bcast: Tu, Zou,
//           Zhan, Zhao, Fan, Multi-core Aware Optimization for MPI Collectives, 2008, sections II and III:
//           first to the head of each node, then in segments on the node. The paper does one after the other;
//           we pass segments on at once.
// Idea:     The first rank of each node speaks for it. Its ranks copy what they owe other nodes into the
//           leader's scratch, each its own, at the same time; the leaders exchange these bundles by the inner
//           exchange that the parameter names; and each rank, the leader too, copies its own blocks out of
//           what has come, while more comes. The paper gathers in the order of the curve from one another's
//           send buffers; here a rank touches its own buffers alone, so that any buffer will do.
//           bcast (leader_bcast.cc): the root leads its node. Its buffer goes in segments along a tree of
//           base radix over the leaders, or along a chain where that sends less one after the other, and on
//           each node through a ring in the leader's scratch, all at the same time. route= takes one of the
//           two, or scatter (leader_scatter.cc): a part for each node goes down the tree, and from there to
//           all others; with fewer segments than nodes that is the tree.
// Needs:    nothing: any ranks, any nodes; the leader's scratch is on the shared heap
// Steps:    per leader the messages of the inner exchange among nodes, pairwise: one to each other node;
//           other ranks none, and a wait for each of its rounds; bcast: a message for each segment and child
//           (scatter: for each child, and N - 1 or fewer to the other of N nodes), as segmented on the node;
//           v forms: as sloav's where much is sent at once, or long blocks
// Bytes:    alltoall between two nodes of L ranks L x L blocks, allgather L, times what the inner exchange
//           sends on; per rank 2 P blocks copied (allgather P + 1); bcast: to each node 1 buffer, 1 copied;
//           sent by the root up to (radix - 1) log_radix N, by chain 1, by scatter 2; v forms: heads and
//           lengths as sloav's, but 8 bytes for each block of allgatherv
// Scratch:  per leader 2 L P blocks (allgather P), and what the inner exchange takes; others L (allgather 0);
//           bcast: per leader up to 4 segments
// Good for: small blocks and many ranks on a node; bcast of any size
//
// Milestones: 1: all that this rank owes others lies in scratch; from 2 on, by leaders: more bundles are
//           there; bcast: as of segmented
#include "algorithms/blocks.h"
#include "algorithms/nodes.h"

namespace coco::algorithms {
namespace {

using schedule::Area;
using schedule::Builder;
using schedule::Milestone;
using schedule::Place;

// A bundle that has come.
struct Come {
    std::int32_t node;
    Place at;
};

// Both the leader and its mates run the exchange: he sends, they follow.
class LeaderCourier final : public Courier {
  public:
    LeaderCourier(const Shape& shape, const Nodes& nodes, const Participants& all)
        : shape_(shape), nodes_(nodes), all_(all), leader_(nodes.mates()[0]), first_(lay_out()) {}

    Place outgoing(std::int32_t to) override {
        return all_.personal ? first_.outgoing[static_cast<std::size_t>(to)] : wanted(all_.me);
    }
    Place wanted(std::int32_t from) override { return first_.wanted[static_cast<std::size_t>(from)]; }
    bool is_ring() const override { return true; }
    Place room(std::int32_t blocks) override { return {leader_, Area::scratch, take(blocks)}; }
    void copy(Place source, Place target, std::int32_t blocks) override {
        flush();
        for (std::int32_t i = 0; is_leader() && i < blocks; ++i)
            steps.copy(behind(source, i), behind(target, i));
    }
    void send(std::int32_t to, Place first, std::int32_t blocks) override {
        flush();
        if (is_leader()) steps.send(all_.rank[static_cast<std::size_t>(to)], first, blocks);
    }
    void receive(std::int32_t from, Place first, std::int32_t blocks) override {
        flush();
        if (is_leader()) steps.receive(all_.rank[static_cast<std::size_t>(from)], first, blocks);
    }
    void complete(std::int32_t left) override {
        flush();
        use_later();
        if (is_leader()) steps.complete(left);
    }
    void arrived(std::int32_t from, Place at) override { come_.push_back({from, at}); }

    bool is_leader() const { return shape_.rank == leader_; }
    // What has come since the last time may be used: the leader says so, the others use it.
    void flush() {
        if (come_.empty()) return;
        if (is_leader() && nodes_.own_size() > 1) steps.raise(++milestone_);
        if (!is_leader()) steps.wait(leader_, ++milestone_);
        for (const Come& come : come_) (is_leader() ? later_.push_back(come) : use(come));
        come_.clear();
    }
    void use_rest() {
        flush();
        use_later();
    }
    std::int32_t scratch() const { return is_leader() ? next_ : all_.personal ? nodes_.own_size() : 0; }

    Builder steps;

  private:
    struct Firsts {
        std::vector<Place> outgoing, wanted;
    };

    // The leader's own part of what came before: it takes that while messages are under way.
    void use_later() {
        for (const Come& come : later_) use(come);
        later_.clear();
    }

    std::int32_t take(std::int32_t blocks) {
        next_ += blocks;
        return next_ - blocks;
    }

    // Personal: a bundle to and from each other node, by number. Gather: one from each, round from the own
    // one, so that an exchange by distance finds them together; curves want them by number.
    Firsts lay_out() {
        auto nodes = static_cast<std::size_t>(all_.count());
        Firsts firsts{std::vector<Place>(nodes), std::vector<Place>(nodes)};
        if (all_.personal) next_ = nodes_.own_size();  // blocks for mates
        for (std::int32_t n = 0; all_.personal && n < all_.count(); ++n)
            if (n != all_.me) firsts.outgoing[static_cast<std::size_t>(n)] = room(all_.blocks(all_.me, n));
        bool round = !all_.personal && shape_.parameters.inner == Inner::bruck;
        for (std::int32_t i = 0; i < all_.count(); ++i) {
            std::int32_t n = round ? all_.at_distance(all_.me, i) : i;
            if (!all_.personal || n != all_.me)
                firsts.wanted[static_cast<std::size_t>(n)] = room(all_.blocks(n, all_.me));
        }
        return firsts;
    }

    void use(const Come& come) {
        if (all_.personal) return nodes_.take_column(steps, come.node, come.at);
        Place source = come.at;
        for (std::int32_t sender : nodes_.ranks_of(come.node)) {
            if (sender != shape_.rank) steps.copy(source, received(sender, shape_.rank));
            source = behind(source, 1);
        }
    }

    const Shape& shape_;
    const Nodes& nodes_;
    const Participants& all_;
    const std::int32_t leader_;
    std::int32_t next_ = 0;
    Firsts first_;
    Milestone milestone_ = schedule::kArrived;
    std::vector<Come> come_, later_;
};

Participants leaders_of(const Nodes& nodes, bool personal) {
    Participants all;
    for (std::int32_t n = 0; n < nodes.count(); ++n) {
        all.rank.push_back(nodes.ranks_of(n)[0]);
        all.weight.push_back(nodes.size_of(n));
    }
    all.me = nodes.own();
    all.personal = personal;
    return all;
}

void fill(const Shape& shape, const Nodes& nodes, const Participants& all, LeaderCourier& courier,
          Waits& arrivals) {
    Builder& steps = courier.steps;
    bool shares = nodes.own_size() > 1;
    if (all.personal) nodes.leave_for_mates(steps);
    if (courier.is_leader() && shares) steps.raise(schedule::kArrived);
    if (!all.personal || nodes.count() > 1) arrivals.await(steps, nodes.mates()[0]);
    for (std::int32_t n = 0; all.personal && n < nodes.count(); ++n)
        if (n != nodes.own()) nodes.fill_row(steps, n, courier.outgoing(n));
    if (!all.personal)
        steps.copy(sent(shape.exchange, shape.rank, shape.rank),
                   behind(courier.wanted(nodes.own()), nodes.seat()));
    if (!courier.is_leader()) steps.raise(schedule::kArrived);
    copy_block(steps, shape.exchange, shape.rank, shape.rank);
}

}  // namespace

schedule::Schedule make_leader(const Shape& shape) {
    if (shape.exchange == Exchange::bcast) return make_leader_bcast(shape);
    const Nodes nodes(shape);
    const Participants all = leaders_of(nodes, shape.exchange == Exchange::alltoall);
    LeaderCourier courier(shape, nodes, all);
    Waits arrivals(shape.rank, schedule::kArrived);
    fill(shape, nodes, all, courier, arrivals);
    for (std::int32_t mate : nodes.mates())
        if (courier.is_leader()) arrivals.await(courier.steps, mate);
    if (all.personal && !courier.is_leader()) nodes.take_from_mates(courier.steps, {&arrivals});
    if (!all.personal) courier.arrived(all.me, courier.wanted(all.me));
    exchange_by(shape.parameters.inner, all, shape.parameters.radix, courier);
    courier.use_rest();
    if (all.personal && courier.is_leader()) nodes.take_from_mates(courier.steps, {&arrivals});
    return courier.steps.scratch(courier.scratch()).raise(schedule::kDone).take();
}

}  // namespace coco::algorithms
