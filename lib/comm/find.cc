// SPDX-License-Identifier: BSD-3-Clause
#include "comm/find.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/of_thread.h"
#include "comm/bond.h"
#include "comm/handles.h"
#include "comm/set_up.h"
#include "comm/world.h"
#include "mpi/library.h"

namespace coco::comm {
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
    comm->bond = bond.get();
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
    comm.bond = &bond;
    comm.stands_in = true;
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
    if (!mpi::has_world()) return false;  // a session
    return std::ranges::count(ranks_in_world_of(comm.handle), mpi::lib().constants.undefined) != 0;
}

void settle(Comm& comm) {
    close(comm, comm.id == 0 && spans_worlds(comm) ? stats::Reason::other_world : set_up(comm));
}

// A call counts as much as ours is likely to gain on it, so that a communicator that is freed soon costs
// little more than without libcoco. Where ranks meet in their own memory, setting a communicator up takes 1
// to 2 us on 2 ranks, and more where ranks share cores (bench/short_lived). Large exchanges win that back at
// once, small ones in some 16 calls, bcasts in some 40, calls on neighbours, whose lists are read first, in
// 30 to 60. No rank knows the size of a v or w form: with MPICH the first counts as large, with Open MPI the
// fourth. Where set-up takes collectives of the MPI library, the third call counts as enough: many programs
// make communicators by the thousand and use each once or twice.
constexpr std::uint32_t kEnough = 40, kSizedWeight = 10, kExchangeWeight = 5, kLeastWeight = 1,
                        kWeightWithCollectives = 14;
constexpr std::uint64_t kLargeBytes = 16 * 1024;

std::uint32_t weight_of(const Comm& comm, algorithms::Collective collective, std::uint64_t block_bytes) {
    const bool meets_in_memory = comm.stands_in || (comm.id != 0 && comm.map.nodes() == 1);
    const bool is_world = comm.handle == mpi::lib().comm_world;  // is used for long
    if (!meets_in_memory) return is_world ? kEnough : kWeightWithCollectives;
    if (is_rooted(collective) || is_neighbor(collective)) return kLeastWeight;
    if (is_sized(collective)) return mpi::lib().manners.exchanges_are_slow ? kEnough : kSizedWeight;
    return block_bytes >= kLargeBytes ? kEnough : kExchangeWeight;
}

}  // namespace

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
        const Bond* bond = t_last.comm->stands_in ? t_last.comm->bond : nullptr;
        if (bond != nullptr && bond->comm != nullptr) t_last.comm = bond->comm.get();  // by another thread
        return t_last.comm;
    }
    Comm* comm = find_or_make(handle);
    if (comm == nullptr) return &invalid();
    t_last = {handle, comm, now};
    return comm;
}

Comm* count_call(Comm& comm, algorithms::Collective collective, std::uint64_t block_bytes) {
    COCO_CHECK(!comm.settled && comm.bond != nullptr, "calls are counted until a communicator is settled");
    Bond& bond = *comm.bond;
    bond.weight += weight_of(comm, collective, block_bytes);
    if (bond.weight < kEnough) return &comm;
    Comm* const state = comm.stands_in ? make_known(comm.handle, bond) : &comm;
    if (!state->settled) settle(*state);
    if (t_last.handle == comm.handle) t_last.comm = state;
    return state;
}

UnusedCalls unused_calls(const Comm& stand_in, algorithms::Collective collective, std::uint64_t block_bytes) {
    COCO_CHECK(stand_in.stands_in, "calls without a state are those of a stand-in");
    const std::uint64_t weight = weight_of(stand_in, collective, block_bytes);
    return {&stand_in.bond->weight, weight, kEnough - weight};
}

Comm* open_world() {
    const mpi::Comm world = mpi::lib().comm_world;
    Bond* bond = find_bond(world);
    if (bond == nullptr || bond->id == 0 || bond->comm != nullptr) return nullptr;
    Comm* comm = make_known(world, *bond);
    if (comm->map.nodes() == 1 && !comm->settled) settle(*comm);
    return comm->closed == stats::Reason::none ? comm : nullptr;
}

void close_for_devices(Comm& comm) {
    COCO_CHECK(!comm.stands_in, "a communicator that is closed has a state");
    close(comm, stats::Reason::device_memory);
    forget_handles();  // what is remembered of calls
}

}  // namespace coco::comm
