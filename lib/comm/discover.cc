// SPDX-License-Identifier: BSD-3-Clause
#include "comm/discover.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>

#include "base/env.h"
#include "base/log.h"
#include "comm/control_pool.h"
#include "comm/mpi_table.h"
#include "comm/progress.h"
#include "heap/segment.h"
#include "os/probe.h"

namespace coco::comm {
namespace {

// Of a node. Two tables of displacements and two staged sides fit the stage ring up to here.
constexpr std::int32_t kMatesMost = 500;

// What each rank tells all others of the communicator. Travels as bytes between equal programs of one job.
struct Card {
    heap::SegmentId segment;
    std::uint64_t control_at;  // offset in the segment
    std::uint64_t epoch_base;
    std::uint64_t tape_at;
    std::uint64_t choice_hash;
    std::uint64_t node_label;
    std::uint64_t domain_label;
    std::uint64_t local_ranks;  // of the whole job on this node, as the launcher says; 0: unknown
    std::uint64_t wires;        // private communicators that this process has
    os::Cpus cpus;
};

std::atomic<std::uint64_t> g_choice_hash{0};

std::uint64_t launcher_local_ranks() {
    for (const char* name : {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_TASKS_PER_NODE"}) {
        std::uint64_t number = 0;
        if (base::parse_number(base::env(name), number)) return number;
    }
    return 0;
}

struct WorldSeat {
    std::int32_t rank, ranks;
};

// Sessions have no world: then the communicator itself is dealt to the invented machine.
WorldSeat world_seat(const Comm& comm) {
    int initialized = 0;
    mpi().Initialized(&initialized);
    WorldSeat seat{comm.rank, comm.ranks};
    if (initialized) {
        mpi().Comm_rank(mpi().comm_world, &seat.rank);
        mpi().Comm_size(mpi().comm_world, &seat.ranks);
    }
    return seat;
}

void fill_labels(const Comm& comm, Card& card) {
    card.node_label = card.segment.host;
    card.domain_label = static_cast<std::uint64_t>(os::seat().domain);
    std::string error;
    std::string_view invented = base::env("COCO_TOPOLOGY");
    auto machine = invented.empty() ? std::nullopt : os::invented_machine(invented, error);
    if (!machine) return;
    WorldSeat world = world_seat(comm);
    topology::Seat seat = topology::deal(*machine, world.ranks, world.rank);
    card.node_label += static_cast<std::uint64_t>(seat.node);
    card.domain_label = static_cast<std::uint64_t>(seat.domain);
}

Card make_card(const Comm& comm) {
    Card card{};
    card.segment = heap::own_id();
    card.choice_hash = g_choice_hash.load(std::memory_order_relaxed);
    card.local_ranks = launcher_local_ranks();
    card.wires = static_cast<std::uint64_t>(Wire::alive());
    card.cpus = os::usable_cpus();
    fill_labels(comm, card);
    if (comm.control != nullptr) {
        card.control_at = comm.offset_of(comm.control);
        card.epoch_base = comm.control->flag.value.load(std::memory_order_relaxed) >> 20;
        card.tape_at = comm.control->tape_at;
    }
    return card;
}

void fill_map(Comm& comm, const std::vector<Card>& cards) {
    std::vector<std::uint64_t> nodes, domains;
    for (const Card& card : cards) {
        nodes.push_back(card.node_label);
        domains.push_back(card.domain_label);
    }
    comm.map = topology::make_node_map(nodes, domains);
    comm.domains = comm.map.domains();
    comm.nodes = comm.map.nodes();
    comm.ranks_per_node = 0;
    comm.mates.clear();
    std::vector<std::int32_t> on_node(static_cast<std::size_t>(comm.map.nodes()));
    for (std::int32_t r = 0; r < comm.ranks; ++r) {
        std::int32_t node = comm.map.node[r];
        comm.ranks_per_node = std::max(comm.ranks_per_node, ++on_node[node]);
        if (r != comm.rank && node == comm.map.node[comm.rank]) comm.mates.push_back(r);
    }
}

Peer peer_of(std::byte* segment, const Card& card) {
    return {.segment = segment,
            .control = reinterpret_cast<Control*>(segment + card.control_at),
            .epoch_base = card.epoch_base,
            .done_epoch = 0,
            .tape_at = card.tape_at};
}

// What a rank could map of its node. Travels as bytes.
struct Reach {
    std::uint64_t all;    // whether every mate, and the node is not too large
    std::uint64_t first;  // the lowest rank of those, itself included
};

Reach map_mates(Comm& comm, const std::vector<Card>& cards) {
    Reach reach{comm.mates.size() < static_cast<std::size_t>(kMatesMost),
                static_cast<std::uint64_t>(comm.rank)};
    comm.peers.assign(cards.size(), {});
    for (std::int32_t r = 0; r < comm.ranks; ++r) {
        if (cards[r].node_label != cards[comm.rank].node_label) continue;
        bool has_heap = cards[r].segment.cookie != 0 && cards[r].control_at != 0;
        std::byte* base = has_heap ? heap::map_peer(cards[r].segment) : nullptr;
        if (base == nullptr) {
            reach.all = 0;
            if (r != comm.rank) continue;
            reach.first = static_cast<std::uint64_t>(r);  // none of them can map this rank either
            break;
        }
        comm.peers[r] = peer_of(base, cards[r]);
        reach.first = std::min<std::uint64_t>(reach.first, static_cast<std::uint64_t>(r));
    }
    return reach;
}

// More ranks than the CPUs that they may use between them: whoever spins then keeps another from running.
bool is_crowded(const Comm& comm, const std::vector<Card>& cards) {
    os::Cpus all = cards[comm.rank].cpus;
    int mates = 0;
    for (const Card& card : cards) {
        if (card.segment.host != cards[comm.rank].segment.host) continue;
        ++mates;
        all.join(card.cpus);
    }
    auto online = static_cast<std::uint64_t>(sysconf(_SC_NPROCESSORS_ONLN));
    return mates > all.count() || cards[comm.rank].local_ranks > online;
}

// Whether the MPI library gives the CPU away itself while it waits: Open MPI does where it was told to, by
// the user or by its launcher, which counts ranks. A second yield to each look makes a message's way longer.
bool library_yields() {
    for (const char* name : {"OMPI_MCA_mpi_yield_when_idle", "OMPI_MCA_mpi_oversubscribe"}) {
        std::string_view value = base::env(name);
        if (value == "1" || value == "true" || value == "yes") return true;
    }
    return false;
}

void choose_waiting(Comm& comm, bool crowded) {
    comm.waiting.progress = drive_progress;
    // For a network's latency it does not pay to spin, nor to keep a mate from running who shares the core.
    if (comm.wire != nullptr) comm.waiting.spins = 100;
    if (!crowded) return;
    comm.waiting.spins = 0;
    comm.yields_for_messages = !library_yields();
    comm.waiting.yields = 2000;
    comm.waiting.yields_per_progress = 2;
    comm.waiting.least_sleep_ns = 10'000;
    comm.waiting.most_sleep_ns = 200'000;
}

// What all ranks see in the cards.
stats::Reason check(const Comm& comm, const std::vector<Card>& cards) {
    std::uint64_t wires = 0;
    for (const Card& card : cards) {
        wires = std::max(wires, card.wires);
        if (card.choice_hash == cards[0].choice_hash) continue;
        if (comm.rank == 0)
            COCO_LOG(warn, "ranks have unequal COCO_ settings or policies: calls are left to MPI");
        return stats::Reason::disabled;
    }
    bool wired = comm.map.nodes() > 1;
    return wired && wires >= Wire::kMost ? stats::Reason::many_communicators : stats::Reason::none;
}

std::vector<Reach> reaches_of_all(Comm& comm, const std::vector<Card>& cards) {
    Reach mine = map_mates(comm, cards);
    std::vector<Reach> reaches(cards.size());
    mpi().Allgather(&mine, sizeof mine, mpi().byte, reaches.data(), sizeof mine, mpi().byte, comm.handle);
    return reaches;
}

bool all_mapped(const std::vector<Reach>& reaches) {
    return std::ranges::all_of(reaches, [](const Reach& reach) { return reach.all != 0; });
}

// Nodes on which some rank cannot map another become several: each rank's is what `part_of` says of it, a
// number of its own for each part.
template <class PartOf>
void part_nodes(Comm& comm, std::vector<Card>& cards, const std::vector<Reach>& reaches, PartOf part_of) {
    std::set<std::uint64_t> parted;
    for (std::size_t r = 0; r < cards.size(); ++r)
        if (!reaches[r].all) parted.insert(cards[r].node_label);
    for (std::size_t r = 0; r < cards.size(); ++r)
        if (parted.contains(cards[r].node_label))
            cards[r].node_label = ~static_cast<std::uint64_t>(part_of(r));
    fill_map(comm, cards);
}

// The same answer on all ranks: where ranks cannot map their mates, whole nodes can go on without. Hosts that
// look alike, or users, part by the first rank that each can map; who then still has a mate that it cannot
// map is a node of its own, and so are its mates.
stats::Reason settle_nodes(Comm& comm, std::vector<Card>& cards) {
    std::vector<Reach> reaches = reaches_of_all(comm, cards);
    if (all_mapped(reaches)) return stats::Reason::none;
    if (comm.map.nodes() == 1) return stats::Reason::no_shared_heap;
    part_nodes(comm, cards, reaches, [&](std::size_t r) { return cards.size() + reaches[r].first; });
    reaches = reaches_of_all(comm, cards);
    if (!all_mapped(reaches)) part_nodes(comm, cards, reaches, [](std::size_t r) { return r; });
    return stats::Reason::none;
}

// A rank alone on its node needs no shared heap.
bool stand_alone(Comm& comm) {
    if (comm.control == nullptr) {
        comm.control = make_lone_control();
        comm.control_is_lone = true;
        if (comm.control == nullptr) return false;
    }
    comm.peers[comm.rank] = {.segment = comm.segment,
                             .control = comm.control,
                             .epoch_base = comm.control->flag.value.load(std::memory_order_relaxed) >> 20,
                             .done_epoch = 0,
                             .tape_at = comm.control->tape_at};
    return true;
}

stats::Reason wire_up(Comm& comm) {
    if (comm.map.nodes() == 1) return stats::Reason::none;
    std::uint64_t ready = comm.mates.empty() ? stand_alone(comm) : true, all_ready = 0;
    comm.wire = Wire::make(comm.handle);
    ready = ready && comm.wire != nullptr;
    mpi().Allreduce(&ready, &all_ready, 1, mpi().uint64, mpi().min, comm.handle);
    return all_ready ? stats::Reason::none : stats::Reason::no_shared_heap;
}

}  // namespace

void set_choice_hash(std::uint64_t hash) { g_choice_hash.store(hash, std::memory_order_relaxed); }

namespace {

void prepare_control(Comm& comm) {
    if (heap::own().bytes == 0) return;
    comm.segment = heap::own().base;
    comm.control = take_control();
    if (comm.control != nullptr) comm.tape = Ring<kTapeBytes>(comm.control->tape_at);
}

void leave_to_mpi(Comm& comm, stats::Reason reason) {
    if (comm.control_is_lone)
        end_lone_control(comm.control);
    else if (comm.control != nullptr)
        retire_control(comm.control, {});
    comm.control = nullptr;
    comm.wire.reset();
    comm.peers.clear();
    comm.mates.clear();
    COCO_LOG(info,
             "communicator of " << comm.ranks << " ranks is left to MPI: " << stats::text_of(reason).what);
}

}  // namespace

stats::Reason set_up(Comm& comm) noexcept {
    prepare_control(comm);
    Card mine = make_card(comm);
    std::vector<Card> cards(static_cast<std::size_t>(comm.ranks));
    int rc =
        mpi().Allgather(&mine, sizeof mine, mpi().byte, cards.data(), sizeof mine, mpi().byte, comm.handle);
    stats::Reason reason = stats::Reason::no_shared_heap;
    if (rc == MPI_SUCCESS) {
        fill_map(comm, cards);
        reason = check(comm, cards);
        if (reason == stats::Reason::none) reason = settle_nodes(comm, cards);
        if (reason == stats::Reason::none) reason = wire_up(comm);
    }
    if (reason != stats::Reason::none) {
        leave_to_mpi(comm, reason);
        return reason;
    }
    choose_waiting(comm, is_crowded(comm, cards));
    os::caches();  // looked up now, not in a call that is timed
    COCO_LOG(debug, "communicator of " << comm.ranks << " ranks on " << comm.map.nodes() << " nodes set up"
                                       << (comm.waiting.spins == 0 ? ", more ranks than CPUs" : ""));
    return stats::Reason::none;
}

}  // namespace coco::comm
