// SPDX-License-Identifier: BSD-3-Clause
#include "comm/set_up.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <set>

#include "base/check.h"
#include "base/index.h"
#include "base/log.h"
#include "channel/control_pool.h"
#include "comm/arrange.h"
#include "comm/complain.h"
#include "comm/meeting.h"
#include "comm/passed.h"
#include "comm/told.h"
#include "heap/segment.h"
#include "mpi/library.h"
#include "os/devices.h"
#include "os/probe.h"

namespace coco::comm {
namespace {

// The card that a rank shows to all others of the communicator.
struct Card : RankCard {
    std::uint64_t control_at;  // offset in the segment
    std::uint64_t epoch_base;
    std::uint64_t tape_at;
};

std::atomic<std::uint64_t> g_choice_hash{0};

// The parts of its channel that a rank gathers until it opens it.
struct Parts {
    channel::Control* control = nullptr;
    std::vector<channel::Peer> peers = {};  // by rank
};

Card make_card(const Comm& comm, const channel::Control* control) {
    Card card{};
    // Sessions have no world: then the communicator itself is dealt to the invented machine.
    const bool world = mpi::has_world();
    static_cast<RankCard&>(card) =
        make_rank_card(g_choice_hash.load(std::memory_order_relaxed), world ? mpi::world_rank() : comm.rank,
                       world ? mpi::world_ranks() : comm.ranks);
    if (control != nullptr) {
        card.control_at =
            static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(control) - heap::own().base);
        COCO_CHECK(card.control_at < heap::own().bytes,
                   "a control block that is shown lies on the own shared heap");
        card.epoch_base = control->flag.value.load(std::memory_order_relaxed) >> 20;
        card.tape_at = control->tape_at;
    }
    return card;
}

void arrange_by(Comm& comm, const std::vector<Card>& cards) {
    std::vector<const RankCard*> pointers;
    for (const Card& card : cards) pointers.push_back(&card);
    arrange(comm, pointers);
}

channel::Peer peer_of(std::byte* segment, const Card& card) {
    COCO_CHECK(segment != nullptr && card.control_at != 0, "a peer that is mapped has a control block");
    return {.segment = segment,
            .growths = &heap::growths_of(segment),
            .control = reinterpret_cast<channel::Control*>(segment + card.control_at),
            .epoch_base = card.epoch_base,
            .tape_at = card.tape_at};
}

// How much of its node a rank could map. Travels as bytes.
struct Reach {
    std::uint64_t all;     // whether it mapped every mate, and the node is not too large
    std::uint64_t first;   // the lowest rank that it mapped, itself included
    std::uint64_t closed;  // whether some mate's descriptors are closed to it
};

bool is_refused() {
    int error = heap::last_refusal().error;
    return error == EACCES || error == EPERM;
}

Reach map_mates(const Comm& comm, const std::vector<Card>& cards, std::vector<channel::Peer>& peers) {
    COCO_CHECK(cards.size() == base::index(comm.ranks), "each rank has shown its card");
    Reach reach{comm.mates.size() < base::index(kMatesMost), base::index(comm.rank), 0};
    peers.assign(cards.size(), {});
    for (std::int32_t r = 0; r < comm.ranks; ++r) {
        if (cards[r].node_label != cards[comm.rank].node_label) continue;
        bool has_heap = cards[r].segment.cookie != 0 && cards[r].control_at != 0;
        std::byte* base = has_heap ? heap::map_peer(cards[r].segment) : nullptr;
        if (base == nullptr) {
            reach.all = 0;
            reach.closed |= has_heap && is_refused();
            if (r != comm.rank) continue;
            reach.first = base::index(r);  // none of them can map this rank either
            break;
        }
        peers[r] = peer_of(base, cards[r]);
        reach.first = std::min<std::uint64_t>(reach.first, base::index(r));
    }
    return reach;
}

// The same on all ranks: each has all cards.
bool hashes_agree(const Comm& comm, const std::vector<Card>& cards) {
    const bool agree = std::ranges::all_of(
        cards, [&](const Card& card) { return card.choice_hash == cards[0].choice_hash; });
    if (!agree && comm.rank == 0)
        COCO_LOG(warn, "ranks have unequal COCO_ settings or policies: calls are left to MPI");
    return agree;
}

std::vector<Reach> reaches_of_all(const Comm& comm, const std::vector<Card>& cards,
                                  std::vector<channel::Peer>& peers) {
    Reach mine = map_mates(comm, cards, peers);
    std::vector<Reach> reaches(cards.size());
    mpi::lib().Allgather(&mine, sizeof mine, mpi::lib().byte, reaches.data(), sizeof mine, mpi::lib().byte,
                         comm.handle);
    return reaches;
}

bool all_mapped(const std::vector<Reach>& reaches) {
    return std::ranges::all_of(reaches, [](const Reach& reach) { return reach.all != 0; });
}

// Parts each node on which some rank cannot map another into several: `part_of` gives the number of the part
// to which a rank belongs.
template <class PartOf>
void part_nodes(Comm& comm, std::vector<Card>& cards, const std::vector<Reach>& reaches, PartOf part_of) {
    std::set<std::uint64_t> parted;
    for (std::size_t r = 0; r < cards.size(); ++r)
        if (!reaches[r].all) parted.insert(cards[r].node_label);
    for (std::size_t r = 0; r < cards.size(); ++r)
        if (parted.contains(cards[r].node_label)) cards[r].node_label = ~base::index(part_of(r));
    arrange_by(comm, cards);
}

std::vector<heap::SegmentId> segments_of(const std::vector<Card>& cards) {
    std::vector<heap::SegmentId> segments;
    for (const Card& card : cards) segments.push_back(card.segment);
    return segments;
}

// Returns: the same on all ranks. Where ranks of several nodes cannot map their mates, such nodes are parted.
// Hosts that look alike, or users, part by the first rank that each rank can map; a rank that then still has
// a mate that it cannot map becomes a node of its own, and so do its mates.
stats::Reason settle_nodes(Comm& comm, std::vector<Card>& cards, Parts& parts) {
    std::vector<Reach> reaches = reaches_of_all(comm, cards, parts.peers);
    if (std::ranges::any_of(reaches, [](const Reach& reach) { return reach.closed != 0; })) {
        map_passed(comm, segments_of(cards));
        reaches = reaches_of_all(comm, cards, parts.peers);
    }
    if (all_mapped(reaches)) return stats::Reason::none;
    if (comm.map.nodes() == 1) {
        auto speaker = std::ranges::find(reaches, 0u, &Reach::all) - reaches.begin();
        complain_unmapped(comm, base::number(speaker), parts.control != nullptr);
        return stats::Reason::no_shared_heap;
    }
    part_nodes(comm, cards, reaches, [&](std::size_t r) { return cards.size() + reaches[r].first; });
    reaches = reaches_of_all(comm, cards, parts.peers);
    if (!all_mapped(reaches)) part_nodes(comm, cards, reaches, [](std::size_t r) { return r; });
    return stats::Reason::none;
}

// The ranks exchange their cards by collectives of the MPI library, and map each other.
stats::Reason meet_by_cards(Comm& comm, Parts& parts) {
    os::caches();  // MPI_Init has looked them up, unless there is no such call, or the world is too large
    if (heap::own().bytes != 0) parts.control = channel::control_pool().take();
    Card mine = make_card(comm, parts.control);
    std::vector<Card> cards(base::index(comm.ranks));
    int rc = mpi::lib().Allgather(&mine, sizeof mine, mpi::lib().byte, cards.data(), sizeof mine,
                                  mpi::lib().byte, comm.handle);
    if (rc != mpi::kSuccess) return stats::Reason::no_shared_heap;
    arrange_by(comm, cards);
    if (!hashes_agree(comm, cards)) return stats::Reason::disabled;
    return settle_nodes(comm, cards, parts);
}

// The ranks know one another since MPI_Init.
stats::Reason meet_in_world(const Comm& comm) {
    COCO_CHECK(comm.world_ranks != nullptr, "a communicator with an identity is of ranks of the world");
    return comm.map.ranks_per_node() <= kMatesMost ? stats::Reason::none : stats::Reason::no_shared_heap;
}

// A rank alone on its node needs no shared heap.
bool stand_alone(Comm& comm, Parts& parts) {
    if (parts.control == nullptr) {
        parts.control = channel::make_lone_control();
        comm.lane.control_is_lone = true;
        if (parts.control == nullptr) return false;
    }
    parts.peers.resize(base::index(comm.ranks));
    parts.peers[base::index(comm.rank)] = {
        .segment = heap::own().base,
        .control = parts.control,
        .epoch_base = parts.control->flag.value.load(std::memory_order_relaxed) >> 20,
        .tape_at = parts.control->tape_at};
    return true;
}

// Makes the wire between nodes.
stats::Reason wire_up(Comm& comm, Parts& parts) {
    COCO_CHECK(comm.map.nodes() > 1, "a wire is for ranks of several nodes");
    struct {
        std::uint64_t wires, uses_device;
    } mine{base::index(mpi::Wire::alive()), os::uses_device()}, most{};
    mpi::lib().Allreduce(&mine, &most, 2, mpi::lib().int64, mpi::lib().max, comm.handle);
    if (most.uses_device != 0) return stats::Reason::device_memory;
    if (most.wires >= mpi::Wire::kMost) return stats::Reason::many_communicators;
    const bool ready = !comm.mates.empty() || stand_alone(comm, parts);
    comm.wire = mpi::Wire::make(comm.handle);
    comm.lane.post.wire = comm.wire.get();
    return mpi::on_all_ranks(comm.handle, ready && comm.wire != nullptr) ? stats::Reason::none
                                                                         : stats::Reason::no_shared_heap;
}

// Mates that know one another since MPI_Init find each other's control blocks when they first wait.
void open_channel(Comm& comm, Parts& parts) {
    if (comm.id != 0 && !comm.mates.empty())
        show_control(comm);
    else
        comm.lane.channel.open(0, comm.rank, std::move(parts.peers), comm.mates);
    choose_waiting(comm);
}

void leave_to_mpi(Comm& comm, channel::Control* control, stats::Reason reason) {
    if (comm.lane.control_is_lone)
        channel::end_lone_control(control);
    else if (control != nullptr)
        channel::control_pool().retire(control, {});
    comm.wire.reset();
    comm.lane.post.wire = nullptr;
    comm.mates.clear();
    COCO_LOG(info,
             "communicator of " << comm.ranks << " ranks is left to MPI: " << stats::text_of(reason).what);
}

}  // namespace

void set_choice_hash(std::uint64_t hash) { g_choice_hash.store(hash, std::memory_order_relaxed); }

stats::Reason set_up(Comm& comm) noexcept {
    COCO_CHECK(!comm.lane.channel.is_open() && !comm.stands_in, "a communicator with a state is set up once");
    COCO_CHECK(comm.rank >= 0 && comm.rank < comm.ranks, "a rank of a communicator is one of its ranks");
    Parts parts;
    stats::Reason reason = comm.id != 0 ? meet_in_world(comm) : meet_by_cards(comm, parts);
    if (reason == stats::Reason::none && comm.map.nodes() > 1) reason = wire_up(comm, parts);
    if (reason != stats::Reason::none) {
        leave_to_mpi(comm, parts.control, reason);
        return reason;
    }
    open_channel(comm, parts);
    if (comm.map.nodes() > 1 || comm.id == 0) hear_known_choices(comm);
    COCO_LOG(debug, "communicator of "
                        << comm.ranks << " ranks on " << comm.map.nodes() << " nodes set up"
                        << (comm.lane.channel.waiting.spins == 0 ? ", more ranks than CPUs" : ""));
    return stats::Reason::none;
}

}  // namespace coco::comm
