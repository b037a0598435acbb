// SPDX-License-Identifier: BSD-3-Clause
#include "comm/comm.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/index.h"
#include "base/of_thread.h"
#include "channel/control_pool.h"
#include "comm/arrange.h"
#include "comm/bond.h"
#include "comm/discover.h"
#include "comm/meeting.h"
#include "comm/world.h"
#include "heap/heap.h"
#include "mpi/library.h"
#include "os/clock.h"
#include "os/cpu.h"

namespace coco::comm {

std::atomic<std::uint64_t> g_generation{1};

namespace {

struct LastUsed {
    mpi::Comm handle;
    Comm* comm;
    std::uint64_t generation;
};
thread_local LastUsed t_last{};
thread_local const EndingScope* t_dying = nullptr;  // the scope that began last

void close(Comm& comm, stats::Reason reason) {
    comm.closed = reason;
    comm.settled = true;
}

// The state of a communicator whose ranks meet by a collective.
Comm* make_unknown(mpi::Comm handle) {
    auto bond = std::make_unique<Bond>(0);
    auto comm = std::make_unique<Comm>();
    comm->handle = handle;
    int inter = 0;
    bool valid = mpi::lib().Comm_test_inter(handle, &inter) == mpi::kSuccess &&
                 mpi::lib().Comm_rank(handle, &comm->rank) == mpi::kSuccess &&
                 mpi::lib().Comm_size(handle, &comm->ranks) == mpi::kSuccess;
    if (!valid) return nullptr;
    if (inter)
        close(*comm, stats::Reason::intercommunicator);
    else if (comm->ranks == 1)
        close(*comm, stats::Reason::single_rank);
    bond->comm = std::move(comm);
    Bond* attached = attach(handle, std::move(bond));
    return attached != nullptr ? attached->comm.get() : nullptr;
}

// The state for handles of no communicator: MPI refuses them, and nothing is remembered of them.
Comm& invalid() {
    static Comm* comm = [] {
        auto* made = new Comm;
        close(*made, stats::Reason::bad_arguments);
        return made;
    }();
    return *comm;
}

Comm* make_known(mpi::Comm handle, Bond& bond) {
    COCO_CHECK(bond.comm == nullptr, "a communicator has one state");
    bond.comm = make_state(handle, bond);
    bond.weight = UINT64_MAX;  // no call is of those without a state any more
    if (bond.comm->ranks == 1) close(*bond.comm, stats::Reason::single_rank);
    return bond.comm.get();
}

// Many communicators are called once or twice: what stands in for their state is made once for each thread.
// (The report asks for more of a communicator than a stand-in knows.)
bool may_stand_in(const Bond& bond) { return bond.id != 0 && world_is_one_node() && !stats::enabled(); }

Comm* stand_in(mpi::Comm handle, Bond& bond) {
    struct StandIn;
    Comm& comm = base::of_thread<Comm, StandIn>();
    comm.handle = handle;
    comm.unused = &bond;
    return &comm;
}

Comm* find_or_make(mpi::Comm handle) {
    bool valid = false;
    Bond* bond = find_bond(handle, &valid);
    if (bond == nullptr) return valid ? make_unknown(handle) : nullptr;
    if (bond->comm != nullptr) return bond->comm.get();
    return may_stand_in(*bond) ? stand_in(handle, *bond) : make_known(handle, *bond);
}

// Whether there are ranks of another world. Spawned or connected ranks have agreed on settings among
// themselves only. The answer is the same on all ranks.
bool spans_worlds(const Comm& comm) {
    int initialized = 0;
    mpi::lib().Initialized(&initialized);
    if (!initialized) return false;  // a session: there is no world
    mpi::Group world, group;
    mpi::lib().Comm_group(mpi::lib().comm_world, &world);
    mpi::lib().Comm_group(comm.handle, &group);
    std::vector<int> ranks(base::index(comm.ranks)), there(ranks.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    mpi::lib().Group_translate_ranks(group, comm.ranks, ranks.data(), world, there.data());
    mpi::lib().Group_free(&world);
    mpi::lib().Group_free(&group);
    return std::ranges::find(there, mpi::lib().constants.undefined) != there.end();
}

}  // namespace

void forget_handles() { g_generation.fetch_add(1, std::memory_order_release); }

EndingScope::EndingScope(mpi::Comm handle) : handle_(handle), outer_(std::exchange(t_dying, this)) {
    forget_handles();
}
EndingScope::~EndingScope() {
    t_dying = outer_;
    forget_handles();
}

bool EndingScope::has(mpi::Comm handle) {
    for (const EndingScope* one = t_dying; one != nullptr; one = one->outer_)
        if (one->handle_ == handle) return true;
    return false;
}

Comm* of(mpi::Comm handle) {
    if (EndingScope::has(handle)) [[unlikely]]
        return &invalid();
    std::uint64_t now = generation();
    if (t_last.handle == handle && t_last.generation == now) {
        const Bond* bond = t_last.comm->unused;
        if (bond != nullptr && bond->comm != nullptr) t_last.comm = bond->comm.get();  // by another thread
        return t_last.comm;
    }
    Comm* comm = find_or_make(handle);
    if (comm == nullptr) return &invalid();
    t_last = {handle, comm, now};
    return comm;
}

namespace {

// A call counts as much as ours is likely to gain on it, so that a communicator that is freed soon costs
// little more than without libcoco. Where ranks meet in their own memory, setting a communicator up takes 1
// to 2 us on 2 ranks, and more where ranks share cores (bench/short_lived). Large exchanges win that back at
// once, small ones in some 16 calls, bcasts in some 40, calls on neighbours, whose lists are read first, in
// 30 to 60. No rank knows the size of a v or w form: with MPICH the first counts as large, with Open MPI the
// fourth.
constexpr std::uint32_t kEnough = 40, kSizedWeight = 10, kExchangeWeight = 5, kLeastWeight = 1;
constexpr std::uint64_t kLargeBytes = 16 * 1024;

std::uint32_t weight_of(algorithms::Collective collective, std::uint64_t block_bytes) {
    if (is_rooted(collective) || is_neighbor(collective)) return kLeastWeight;
    if (is_sized(collective)) return mpi::lib().manners.exchanges_are_slow ? kEnough : kSizedWeight;
    return block_bytes >= kLargeBytes ? kEnough : kExchangeWeight;
}

// So many calls come before a set-up that takes collectives of the MPI library: many programs make
// communicators by the thousand and use each once or twice.
constexpr std::uint32_t kCallsBeforeSetUp = 3;

}  // namespace

namespace {

void settle_on_node(Comm& comm) {
    COCO_CHECK(comm.nodes == 1 && !comm.lane.channel.is_open(),
               "a communicator is opened once, by ranks of one node");
    const bool fits = comm.ranks <= kMatesMost;
    if (fits) open_on_node(comm);
    close(comm, fits ? stats::Reason::none : stats::Reason::no_shared_heap);
}

}  // namespace

Comm* open_world() {
    const mpi::Comm world = mpi::lib().comm_world;
    Bond* bond = find_bond(world);
    if (bond == nullptr || bond->id == 0 || bond->comm != nullptr) return nullptr;
    Comm* comm = make_known(world, *bond);
    if (comm->nodes == 1 && !comm->settled) settle_on_node(*comm);
    return comm->closed == stats::Reason::none ? comm : nullptr;
}

void count_call(Comm& comm, algorithms::Collective collective, std::uint64_t block_bytes) {
    COCO_CHECK(!comm.settled, "calls are counted until a communicator is settled");
    COCO_CHECK(comm.unused == nullptr, "a state that stands in for another one counts no calls of its own");
    if (comm.id != 0 && comm.nodes == 1) {
        comm.calls += weight_of(collective, block_bytes);
        if (comm.calls >= kEnough) settle_on_node(comm);
        return;
    }
    const bool world = comm.handle == mpi::lib().comm_world;  // is used for long
    if (++comm.calls < kCallsBeforeSetUp && !world) return;
    close(comm, comm.id == 0 && spans_worlds(comm) ? stats::Reason::other_world : set_up(comm));
}

namespace {

// Counts a call on a communicator that has no state yet. Returns: whether it still needs none.
bool stays_unused(Bond& bond, algorithms::Collective collective, std::uint64_t block_bytes) {
    const std::uint32_t weight = weight_of(collective, block_bytes);
    if (bond.weight + weight >= kEnough) return false;
    bond.weight += weight;
    return true;
}

}  // namespace

UnusedCalls unused_calls(const Comm& stand_in, algorithms::Collective collective, std::uint64_t block_bytes) {
    COCO_CHECK(stand_in.unused != nullptr, "calls without a state are those of a stand-in");
    const std::uint64_t weight = weight_of(collective, block_bytes);
    return {&stand_in.unused->weight, weight, kEnough - weight};
}

Comm* count_unused(Comm& comm, algorithms::Collective collective, std::uint64_t block_bytes) {
    COCO_CHECK(comm.unused != nullptr, "calls without a state are those of a stand-in");
    Bond& bond = *comm.unused;
    if (bond.comm != nullptr) return t_last.comm = bond.comm.get();  // another thread has made it
    if (stays_unused(bond, collective, block_bytes)) return &comm;
    const auto weight = static_cast<std::uint32_t>(bond.weight);
    Comm* made = make_known(comm.handle, bond);
    made->calls = weight;
    t_last.comm = made;
    return made;
}

void close_for_devices(Comm& comm) {
    COCO_CHECK(comm.unused == nullptr, "a communicator that is closed has a state");
    close(comm, stats::Reason::device_memory);
    forget_handles();  // what is remembered of calls
}

Comm::Kept& Comm::kept_for(const ScheduleKey& key) {
    COCO_CHECK(key.exchange != algorithms::Exchange::bcast, "schedules of bcasts are kept apart");
    COCO_CHECK_DEAR(key.algorithm != nullptr, "a schedule is that of an algorithm");
    if (last_schedule < schedules.size() && schedules[last_schedule].key == key)
        return schedules[last_schedule];
    for (last_schedule = 0; last_schedule < schedules.size(); ++last_schedule)
        if (schedules[last_schedule].key == key) return schedules[last_schedule];
    schedules.push_back({key, make_schedule(key)});
    return schedules.back();
}

namespace {

// The hash keeps apart the keys that programs use in turn: consecutive roots, a full train and the short one
// at the end, and the algorithms of a small and of a large bcast.
std::size_t bcast_place(const ScheduleKey& key) {
    constexpr std::uint32_t kApart = 37, kAlgorithmsApart = 11;
    return (static_cast<std::uint32_t>(key.root) + kApart * static_cast<std::uint32_t>(key.segments) +
            kAlgorithmsApart * key.algorithm->mark()) %
           Comm::kBcastSchedules;
}

}  // namespace

std::shared_ptr<const schedule::Schedule> Comm::bcast_schedule_for(const ScheduleKey& key) {
    COCO_CHECK_DEAR(key.exchange == algorithms::Exchange::bcast, "schedules of exchanges are kept apart");
    if (bcast_schedules.empty()) bcast_schedules.resize(kBcastSchedules);
    KeptBcast& kept = bcast_schedules[bcast_place(key)];
    if (kept.schedule == nullptr || !(kept.key == key)) kept = {key, make_schedule(key)};
    return kept.schedule;
}

std::unique_ptr<schedule::Schedule> Comm::make_schedule(const ScheduleKey& key) const {
    COCO_CHECK(key.algorithm != nullptr, "a schedule is that of an algorithm");
    COCO_CHECK(rank >= 0 && rank < ranks && map.ranks() == ranks,
               "a schedule is for a rank that knows where all ranks are");
    COCO_CHECK(key.root >= 0 && key.root < ranks, "a root is one of the ranks");
    COCO_CHECK(key.segments >= 1, "a buffer has a segment or more");
    COCO_CHECK(key.parameters.radix >= 2, "a radix is two or more");
    COCO_CHECK((key.neighborhood == nullptr) == (key.share == nullptr),
               "neighbours and their share go together");
    algorithms::Shape shape{.exchange = key.exchange,
                            .rank = rank,
                            .map = &map,
                            .root = key.root,
                            .segments = key.segments,
                            .parameters = key.parameters,
                            .neighborhood = key.neighborhood,
                            .share = key.share,
                            .bundles = key.bundles,
                            .combined_sends = key.combined_sends,
                            .combined_receives = key.combined_receives};
    return std::make_unique<schedule::Schedule>(key.algorithm->make_schedule(shape));
}

Comm::~Comm() {
    lane.blocks.release_rooms();
    channel::Channel& channel = lane.channel;
    if (!channel.is_open()) return;
    std::vector<void*> memory = lane.post.leave();
    if (control_is_lone) {
        for (void* kept : memory) heap::release(kept);
        channel::end_lone_control(channel.close());
        return;
    }
    std::vector<channel::Pending> pending = channel.pending();
    channel::retire_control(channel.close(), std::move(pending), std::move(memory));
}

}  // namespace coco::comm
