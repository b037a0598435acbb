// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     Li, Zhang, Hoefler 2018, section 2.5: pack on the node, exchange among leaders, unpack on the
//             node. The paper's ranks pack equal shares of the Morton curve from one another's send
//             buffers. Here a rank packs its own blocks alone, so that any buffer will do, which was faster
//             too (bench/results/trials-2-cores.txt, 5). bcast: Tu, Zou, Zhan, Zhao, Fan 2008, sections II
//             and III: first to the head of each node, then in segments on the node. The paper does one
//             after the other; here segments are passed on at once.
// Idea:       The first rank of each node, its leader, speaks for it. The ranks of the node copy what they
//             owe other nodes into the leader's scratch, all at the same time. The leaders exchange these
//             bundles by the inner exchange that the parameter names. Each rank copies its own blocks out
//             of what has come, while more comes. With leaders=N each of N leaders (at most as many as the
//             smallest node has ranks) has a team of the node's ranks and an exchange of its own. bcast:
//             the root leads its node. Its buffer goes in segments to the other leaders: along a tree of
//             base radix, along a chain, or in two steps (route=scatter: a part for each node goes down the
//             tree, then from each node to all others; with fewer segments than nodes it is the tree). Each
//             leader shows the segments to its mates through a ring in its scratch, at the same time.
// Needs:      nothing: any ranks, any nodes; the leader's scratch is on the shared heap
// Steps:      per leader the messages of the inner exchange among nodes, pairwise: one to each other node;
//             other ranks none, and a wait for each of its rounds; bcast: a message for each segment and
//             child (scatter: for each child, and N - 1 or fewer to the other of N nodes), as segmented on
//             the node; v forms: as sloav's where much is sent at once, or long blocks
// Bytes:      alltoall between two nodes of L ranks L x L blocks, allgather L, times what the inner
//             exchange sends on; per rank 2 P blocks copied (allgather P + 1); bcast: to each node 1
//             buffer, 1 copied; sent by the root up to (radix - 1) log_radix N, by chain 1, by scatter 2; v
//             forms: heads and lengths as sloav's, but 8 bytes for each block of allgatherv
// Scratch:    per leader 2 L P blocks (allgather P), and what the inner exchange takes; others L (allgather
//             0); bcast: per leader up to 4 segments
// Good for:   small blocks and many ranks on a node; bcast of any size
// Milestones: a leader raises 1, 2, ... as more bundles are there; bcast: as in segmented
#include <algorithm>
#include <deque>

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

// The ranks of a node for which one leader speaks, and the ranks of the same team on the other nodes.
class Team {
  public:
    Team(const Nodes& nodes, std::int32_t teams, std::int32_t number, bool personal)
        : nodes_(nodes), teams_(teams), number_(number) {
        for (std::int32_t n = 0; n < nodes.count(); ++n) {
            all.rank.push_back(members_of(n)[0]);
            all.weight.push_back(base::number(members_of(n).size()));
            all.readers.push_back(nodes.size_of(n));
        }
        all.me = nodes.own();
        all.personal = personal;
    }

    std::span<const std::int32_t> members_of(std::int32_t node) const {
        return nodes_.team(node, teams_, number_);
    }
    std::span<const std::int32_t> members() const { return members_of(nodes_.own()); }
    std::int32_t leader() const { return members()[0]; }
    // The index of this rank, which is a member, in its team.
    std::int32_t row(std::int32_t rank) const {
        COCO_CHECK(has(rank), "a rank with a row is in the team");
        return base::number(std::ranges::find(members(), rank) - members().begin());
    }
    bool has(std::int32_t rank) const { return std::ranges::count(members(), rank) != 0; }

    Participants all;

  private:
    const Nodes& nodes_;
    std::int32_t teams_, number_;
};

// A bundle that has come, from a node.
struct ArrivedBundle {
    std::int32_t node;
    Place at;
};

// Both the leader and the other ranks of its node run the exchange. The leader sends and receives; the others
// only learn when bundles have come.
class LeaderCourier final : public Courier {
  public:
    LeaderCourier(const Shape& shape, const Nodes& nodes, const Team& team, Builder& steps)
        : shape_(shape),
          nodes_(nodes),
          team_(team),
          all_(team.all),
          leader_(team.leader()),
          first_(lay_out()),
          steps_(steps) {}

    Place outgoing(std::int32_t to) override {
        COCO_CHECK(!all_.personal || to != all_.me, "a leader has no bundle for its own node");
        return all_.personal ? first_.outgoing[base::index(to)] : wanted(all_.me);
    }
    Place wanted(std::int32_t from) override {
        COCO_CHECK(!all_.personal || from != all_.me, "a leader wants no bundle of its own node");
        return first_.wanted[base::index(from)];
    }
    bool is_ring() const override { return true; }
    Place new_scratch(std::int32_t blocks) override { return {leader_, Area::scratch, take(blocks)}; }
    void copy(Place source, Place target, std::int32_t blocks) override {
        flush();
        for (std::int32_t i = 0; is_leader() && i < blocks; ++i)
            steps_.copy(behind(source, i), behind(target, i));
    }
    void send(std::int32_t to, Place first, std::int32_t blocks) override {
        flush();
        if (is_leader()) steps_.send(all_.rank[base::index(to)], first, blocks);
    }
    void receive(std::int32_t from, Place first, std::int32_t blocks) override {
        flush();
        if (is_leader()) steps_.receive(all_.rank[base::index(from)], first, blocks);
    }
    void complete(std::int32_t left) override {
        flush();
        use_for_leader();
        if (is_leader()) steps_.complete(left);
    }
    void arrived(std::int32_t from, Place at) override {
        COCO_CHECK(at.owner == leader_ && at.area == Area::scratch,
                   "a bundle comes into the scratch of a leader");
        arrived_.push_back({from, at});
    }

    bool is_leader() const { return shape_.rank == leader_; }
    void use_rest() {
        flush();
        use_for_leader();
    }
    // The number of scratch blocks of the leader.
    std::int32_t scratch() const { return next_; }

  private:
    struct Firsts {
        std::vector<Place> outgoing, wanted;
    };

    // The bundles that have come since the last call may be used: the leader says so by a milestone, and the
    // other ranks copy their blocks out.
    void flush() {
        if (arrived_.empty()) return;
        if (is_leader() && nodes_.own_size() > 1) steps_.raise(++milestone_);
        if (!is_leader()) steps_.wait(leader_, ++milestone_);
        for (const ArrivedBundle& bundle : arrived_)
            (is_leader() ? for_leader_.push_back(bundle) : use(bundle));
        arrived_.clear();
    }
    // The leader copies its own blocks out of bundles that came before, while messages are under way.
    void use_for_leader() {
        for (const ArrivedBundle& bundle : for_leader_) use(bundle);
        for_leader_.clear();
    }

    std::int32_t take(std::int32_t blocks) {
        COCO_CHECK(blocks > 0, "what is laid into scratch has blocks");
        next_ += blocks;
        return next_ - blocks;
    }

    // Lays the bundles out in the leader's scratch. Personal: one to and one from each other node, by number.
    // Gather: one from each node; for bruck in the order of distance, beginning with the leader's own node,
    // so that it finds them together; for the other exchanges by number.
    Firsts lay_out() {
        auto nodes = base::index(all_.count());
        Firsts firsts{std::vector<Place>(nodes), std::vector<Place>(nodes)};
        if (all_.personal) next_ = nodes_.own_size();  // blocks for mates
        for (std::int32_t n = 0; all_.personal && n < all_.count(); ++n)
            if (n != all_.me) firsts.outgoing[base::index(n)] = new_scratch(all_.blocks(all_.me, n));
        bool round = !all_.personal && shape_.parameters.inner == Inner::bruck;
        for (std::int32_t i = 0; i < all_.count(); ++i) {
            std::int32_t n = round ? all_.at_distance(all_.me, i) : i;
            if (!all_.personal || n != all_.me)
                firsts.wanted[base::index(n)] = new_scratch(all_.blocks(n, all_.me));
        }
        return firsts;
    }

    void use(const ArrivedBundle& bundle) {
        nodes_.take_blocks(steps_, team_.members_of(bundle.node), bundle.at);
    }

    const Shape& shape_;
    const Nodes& nodes_;
    const Team& team_;
    const Participants& all_;
    const std::int32_t leader_;
    std::int32_t next_ = 0;
    Firsts first_;
    Milestone milestone_ = schedule::kArrived;
    std::vector<ArrivedBundle> arrived_, for_leader_;
    Builder& steps_;
};

class LeaderScheme {
  public:
    explicit LeaderScheme(const Shape& shape)
        : shape_(shape), nodes_(shape), personal_(shape.exchange == Exchange::alltoall) {
        std::int32_t count = std::clamp(shape.parameters.leaders, 1, nodes_.smallest());
        for (std::int32_t i = 0; i < count; ++i) {
            teams_.emplace_back(nodes_, count, i, personal_);
            if (teams_.back().has(shape.rank)) own_ = base::index(i);
        }
        COCO_CHECK(shape.parameters.leaders >= 0, "a number of leaders is a count");
        COCO_CHECK(teams_[own_].has(shape.rank), "each rank is in one of the teams of its node");
        for (const Team& team : teams_) couriers_.emplace_back(shape_, nodes_, team, steps_);
    }

    schedule::Schedule take() {
        fill();
        if (personal_ && !leads()) nodes_.take_from_mates(steps_, {&arrivals_});
        // This rank's own team comes first; the bundles of the other teams come meanwhile.
        follow(own_);
        if (personal_ && leads()) nodes_.take_from_mates(steps_, {&arrivals_});
        for (std::size_t i = 1; i < teams_.size(); ++i) follow((own_ + i) % teams_.size());
        std::int32_t scratch = leads() ? couriers_[own_].scratch() : personal_ ? nodes_.own_size() : 0;
        return steps_.scratch(scratch).raise(schedule::kDone).take();
    }

  private:
    bool leads() const { return couriers_[own_].is_leader(); }

    // Copies this rank's blocks into the bundles of its team. A leader then waits for its team.
    void fill() {
        const Team& team = teams_[own_];
        LeaderCourier& courier = couriers_[own_];
        if (personal_) nodes_.leave_for_mates(steps_);
        if (leads() && nodes_.own_size() > 1) steps_.raise(schedule::kArrived);
        if (!personal_ || nodes_.count() > 1) arrivals_.await(steps_, team.leader());
        for (std::int32_t n = 0; personal_ && n < nodes_.count(); ++n)
            if (n != nodes_.own()) nodes_.fill_row(steps_, n, courier.outgoing(n), team.row(shape_.rank));
        if (!personal_)
            steps_.copy(sent(shape_.exchange, shape_.rank, shape_.rank),
                        behind(courier.wanted(nodes_.own()), team.row(shape_.rank)));
        if (!leads()) steps_.raise(schedule::kArrived);
        if (personal_) copy_block(steps_, shape_.exchange, shape_.rank, shape_.rank);
        for (std::int32_t mate : team.members())
            if (leads()) arrivals_.await(steps_, mate);
    }

    void follow(std::size_t number) {
        const Participants& all = teams_[number].all;
        LeaderCourier& courier = couriers_[number];
        if (!personal_ || nodes_.count() > 1) arrivals_.await(steps_, teams_[number].leader());
        if (!personal_) courier.arrived(all.me, courier.wanted(all.me));
        exchange_by(shape_.parameters.inner, all, shape_.parameters.radix, courier);
        courier.use_rest();
    }

    const Shape& shape_;
    const Nodes nodes_;
    const bool personal_;
    Builder steps_;
    Waits arrivals_{shape_.rank, schedule::kArrived};
    std::deque<Team> teams_;
    std::deque<LeaderCourier> couriers_;  // one for each team
    std::size_t own_ = 0;
};

}  // namespace

schedule::Schedule make_leader(const Shape& shape) {
    if (shape.exchange == Exchange::bcast) return make_leader_bcast(shape);
    return LeaderScheme(shape).take();
}

}  // namespace coco::algorithms
