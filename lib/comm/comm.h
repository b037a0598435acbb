// SPDX-License-Identifier: BSD-3-Clause
//
// What is remembered for a communicator: where its ranks are, their control blocks, the epoch, our stage
// ring, the schedules made for it. Hangs on the communicator as an attribute and dies with it. Thread safety:
// MPI allows one collective at a time on a communicator; different ones share nothing but the process-wide
// tables, which lock. Found by of(), which any thread may call.
#pragma once
#include "mpi/handles.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/algorithm.h"
#include "channel/channel.h"
#include "comm/neighbors.h"
#include "mpi/wire.h"
#include "schedule/schedule.h"
#include "stats/stats.h"
#include "topology/node_map.h"

namespace coco::comm {

// One schedule, by all that it depends on besides the communicator.
struct ScheduleKey {
    const algorithms::Algorithm* algorithm;
    algorithms::Exchange exchange;
    std::int32_t root;
    std::int32_t segments;
    algorithms::Parameters parameters = {};
    // neighbor_*; else null.
    const schedule::Neighborhood* neighborhood = nullptr;
    const schedule::EdgeShare* share = nullptr;
    const schedule::Bundles* bundles = nullptr;
    const schedule::CombinedSends* combined_sends = nullptr;
    const schedule::CombinedReceives* combined_receives = nullptr;
    friend bool operator==(const ScheduleKey&, const ScheduleKey&) = default;
};

// Where one area of a rank is in this process, in the call that runs.
struct Row {
    std::byte* base;
    std::int64_t stride_bytes;
};

// A rank's block tables in a v or w form: `staged` of its scratch, else `send` and `recv` of its buffers.
struct Table {
    const channel::StagedBlock* staged;
    const channel::BlockAt* send;
    const channel::BlockAt* recv;
};

constexpr std::uint32_t kLeastUnseen = 32;

struct Bond;

struct Comm {
    mpi::Comm handle;
    // By which its ranks know it alike and meet (comm/bond.h), and who they are; 0 and null: they meet by a
    // collective.
    std::uint64_t id = 0;
    const std::vector<std::int32_t>* world_ranks = nullptr;
    bool crowded = false;  // there are more ranks than CPUs
    // Not null: this is no communicator's state, but stands in for that of one that has been called too
    // seldom to get one.
    Bond* unused = nullptr;
    std::int32_t rank = 0;
    std::int32_t ranks = 0;
    // none: calls may run here; otherwise why every call is handed back.
    stats::Reason closed = stats::Reason::not_set_up;
    bool settled = false;              // open, or closed for good: calls need not be counted any more
    std::uint32_t calls = 0;           // before it was set up
    std::uint32_t neighbor_calls = 0;  // before its neighbours were looked up

    topology::NodeMap map;
    std::int32_t nodes = 0;
    std::int32_t ranks_per_node = 0;
    std::int32_t domains = 0;
    std::vector<std::int32_t> mates;       // the other ranks of this rank's node
    std::unique_ptr<mpi::Wire> wire;       // several nodes: the messages between them
    std::unique_ptr<Neighbors> neighbors;  // once it was asked for: comm/neighbors.h
    channel::Channel channel;
    bool control_is_lone = false;      // its control block is in private memory: alone on the node
    bool yields_for_messages = false;  // ranks outnumber CPUs, and the MPI library does not care

    // What exec keeps between calls so that a call allocates nothing: grown, never shrunk.
    struct Room {
        std::byte* memory = nullptr;
        std::uint64_t bytes = 0;
    };
    std::vector<Row> rows;  // kAreas * ranks
    std::vector<channel::BlockAt> send_blocks, recv_blocks;
    std::vector<Table> tables;  // v and w forms, by rank
    Room scratch;               // several nodes: what schedules call scratch
    // Several nodes: memory of messages of v and w forms, and the call that used it last; 0: free.
    struct Parcel {
        Room room;
        std::uint64_t epoch;
    };
    std::vector<Parcel> parcels;
    Room inbox;  // of leaders: what comes for mates, for calls in turn
    // Several nodes: the largest block of the last alltoallv or alltoallw that we ran, of all ranks: the fact
    // by which all choose for the next one.
    std::uint64_t largest_block_bytes = 0;
    std::uint32_t left_to_mpi = 0;              // calls since then
    std::uint32_t calls_unseen = kLeastUnseen;  // as many may be left before one is taken to see
    Room rooms[4];  // copies of buffers that cannot be used as they are: send and recv, shared and private

    struct Kept {
        ScheduleKey key;
        std::unique_ptr<schedule::Schedule> schedule;
        // Several nodes: all ranks are known to have, or not to have, scratch for blocks of such size. Plain
        // forms and v and w forms ask for different numbers of blocks, so that each has its own answer.
        struct Fit {
            std::uint64_t fitting_block_bytes = 0;
            std::uint64_t failing_block_bytes = UINT64_MAX;
        };
        Fit plain_fit = {}, sized_fit = {};
    };
    // One for each algorithm, form, set of parameters and, of neighbours, graph.
    std::vector<Kept> schedules;
    std::size_t last_schedule = 0;  // the one asked for last
    // Those of bcasts, of which each root and each number of segments wants its own, have so many places and
    // no more: a key has one place, and whoever comes there turns out who was there. That is this rank's own
    // affair and no other rank sees it: the schedule is made again from its shape alone, without a word to
    // anybody. `schedules` must never be turned out so: by their Fit ranks know alike when to ask each other.
    static constexpr std::size_t kBcastSchedules = 128;
    struct KeptBcast {
        ScheduleKey key;
        std::unique_ptr<schedule::Schedule> schedule;
    };
    std::vector<KeptBcast> bcast_schedules;  // by place
    // The policy's last verdict for each collective.
    struct Memo {
        std::uint64_t block_bytes = UINT64_MAX - 1;
        const algorithms::Algorithm* algorithm = nullptr;
        algorithms::Parameters parameters = {};
        bool by_force = false;
        std::uint64_t last_call = 0;  // of this collective that it holds for
    };
    Memo memo[algorithms::kCollectives];
    std::uint64_t calls_made[algorithms::kCollectives] = {};  // since it was set up; all ranks count alike

    ~Comm();

    // The schedule of this rank; made at its first use. That of a bcast is there until the next one is asked
    // for. Requires (kept_for): no bcast.
    Kept& kept_for(const ScheduleKey& key);
    const schedule::Schedule& schedule_for(const ScheduleKey& key) {
        return key.exchange == algorithms::Exchange::bcast ? bcast_schedule_for(key)
                                                           : *kept_for(key).schedule;
    }
    // Waits for all messages but the `left` last started. Returns: as Wire::complete().
    std::int32_t complete(std::size_t left);
    // Waits for these requests, and forgets them.
    void complete(mpi::Requests& requests);

  private:
    const schedule::Schedule& bcast_schedule_for(const ScheduleKey& key);
    std::unique_ptr<schedule::Schedule> make_schedule(const ScheduleKey& key) const;
};

// The state of a communicator: made when first asked for, closed (see Comm::closed) until it has shown that
// it is used again; then set up by the collective that asks, which all its ranks are in. Where all ranks of
// the world are on one node a state of this thread's stands in for it at first (Comm::unused), until the next
// call of of(). Returns: never null. Requires: a valid communicator.
Comm* of(mpi::Comm handle);
// Around MPI_Comm_free and MPI_Comm_disconnect: what delete functions call on the communicator meanwhile is
// the MPI library's. (What we know of it may be gone, and an attribute that is set now is never deleted.)
class Dying {
  public:
    explicit Dying(mpi::Comm handle);
    ~Dying();
    // Of this thread. A delete function may end another communicator meanwhile.
    static bool has(mpi::Comm handle);
    Dying(const Dying&) = delete;
    Dying& operator=(const Dying&) = delete;

  private:
    const mpi::Comm handle_;
    const Dying* const outer_;
};
// Goes up when a communicator is freed or MPI ends: what is remembered of handles elsewhere is stale then.
std::uint64_t generation();
// Makes it go up.
void forget_handles();
// Counts a call on a communicator for whose state `comm` stands in. Returns: its state, made now, if the call
// counts for that; else `comm`, and the call is handed back. Requires: as count_call().
Comm* count_unused(Comm& comm, algorithms::Collective collective, std::uint64_t block_bytes);
// The short way of the first calls on a communicator, which may be freed soon. Whether this thread's last call
// of of() was for this communicator, and gave a stand-in.
bool was_unused(mpi::Comm handle);
// Counts a call as count_unused() does, if it does not make the state. Returns: whether that is so, and the call
// is handed back. Requires: was_unused(); as count_call().
bool passes_unused(mpi::Comm handle, algorithms::Collective collective, std::uint64_t block_bytes);
// Counts one collective call on a communicator that is not settled and sets it up when its time has come.
// block_bytes: of plain alltoalls and allgathers, equal on all ranks by MPI's rules; else 0. Requires: all ranks
// of the communicator call it in the same collective.
void count_call(Comm& comm, algorithms::Collective collective, std::uint64_t block_bytes);
// Counts one collective call on neighbours, before count_call(). Returns: whether the communicator's
// neighbours are known or shall be looked up now.
bool count_neighbor_call(Comm& comm);

// What makes ranks choose alike: a hash of the settings and rules of this process. Ranks whose hashes differ
// never run a call of ours together. Requires: called before the first count_call().
void set_choice_hash(std::uint64_t hash);

}  // namespace coco::comm
