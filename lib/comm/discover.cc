// SPDX-License-Identifier: BSD-3-Clause
#include "comm/discover.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/env.h"
#include "base/log.h"
#include "comm/control_pool.h"
#include "comm/mpi_table.h"
#include "comm/progress.h"
#include "heap/segment.h"
#include "os/probe.h"

namespace coco::comm {
namespace {

// Two tables of displacements and two staged sides fit the stage ring up to here.
constexpr std::int32_t kRanksMost = 500;

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
    comm.ranks_per_node = 0;
    for (std::int32_t n = 0; n < comm.map.nodes(); ++n)
        comm.ranks_per_node =
            std::max(comm.ranks_per_node, static_cast<std::int32_t>(comm.map.ranks_on_node(n).size()));
}

// Maps all node-mates. Returns: whether every one could be mapped.
bool map_peers(Comm& comm, const std::vector<Card>& cards) {
    comm.peers.resize(cards.size());
    for (std::int32_t r = 0; r < comm.ranks; ++r) {
        const Card& card = cards[r];
        if (card.node_label != cards[comm.rank].node_label || card.segment.cookie == 0 ||
            card.control_at == 0)
            return false;
        std::byte* base = heap::map_peer(card.segment);
        if (base == nullptr) return false;
        comm.peers[r] = {.segment = base,
                         .control = reinterpret_cast<Control*>(base + card.control_at),
                         .epoch_base = card.epoch_base,
                         .done_epoch = 0,
                         .tape_at = card.tape_at};
    }
    return true;
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

void choose_waiting(Comm& comm, bool crowded) {
    comm.waiting.progress = drive_progress;
    if (!crowded) return;
    comm.waiting.spins = 0;
    comm.waiting.yields = 2000;
    comm.waiting.yields_per_progress = 16;
}

stats::Reason check(Comm& comm, const std::vector<Card>& cards) {
    for (const Card& card : cards)
        if (card.choice_hash != cards[0].choice_hash) {
            if (comm.rank == 0)
                COCO_LOG(warn, "ranks have unequal COCO_ settings or policies: calls are left to MPI");
            return stats::Reason::disabled;
        }
    if (comm.map.nodes() > 1) return stats::Reason::several_nodes;
    return map_peers(comm, cards) ? stats::Reason::none : stats::Reason::no_shared_heap;
}

// The same answer on all ranks.
stats::Reason agree(const Comm& comm, stats::Reason mine) {
    // Ranks differ only in whether mapping worked: the smaller of "open" = 1 and "not" = 0 decides.
    std::uint64_t open = mine == stats::Reason::none, all_open = 0;
    mpi().Allreduce(&open, &all_open, 1, mpi().uint64, mpi().min, comm.handle);
    if (all_open) return stats::Reason::none;
    return mine == stats::Reason::none ? stats::Reason::no_shared_heap : mine;
}

}  // namespace

void set_choice_hash(std::uint64_t hash) { g_choice_hash.store(hash, std::memory_order_relaxed); }

stats::Reason set_up(Comm& comm) noexcept {
    if (comm.ranks > kRanksMost) return stats::Reason::no_shared_heap;
    comm.segment = heap::own().bytes != 0 ? heap::own().base : nullptr;
    Control* control = comm.segment != nullptr ? take_control() : nullptr;
    comm.control = control;
    if (control != nullptr) comm.tape = Ring<kTapeBytes>(control->tape_at);
    Card mine = make_card(comm);
    std::vector<Card> cards(static_cast<std::size_t>(comm.ranks));
    int rc =
        mpi().Allgather(&mine, sizeof mine, mpi().byte, cards.data(), sizeof mine, mpi().byte, comm.handle);
    stats::Reason reason =
        rc == MPI_SUCCESS ? (fill_map(comm, cards), check(comm, cards)) : stats::Reason::no_shared_heap;
    reason = agree(comm, reason);
    if (reason != stats::Reason::none) {
        comm.control = nullptr;
        comm.peers.clear();
        if (control != nullptr) retire_control(control, {});
        COCO_LOG(info, "communicator of " << comm.ranks
                                          << " ranks is left to MPI: " << stats::text_of(reason).what);
        return reason;
    }
    choose_waiting(comm, is_crowded(comm, cards));
    os::caches();  // looked up now, not in a call that is timed
    COCO_LOG(debug, "communicator of " << comm.ranks << " ranks set up"
                                       << (comm.waiting.spins == 0 ? ", more ranks than CPUs" : ""));
    return stats::Reason::none;
}

}  // namespace coco::comm
