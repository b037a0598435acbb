// SPDX-License-Identifier: BSD-3-Clause
//
// The short way of calls that go to the MPI library as earlier ones of this thread did. Some of the library's small calls take
// 0.1 to 0.3 us, of which a look at what is remembered of calls (repeat.h) would take a sixth. The doors ask here first.
//
// Called by the doors, and by repeat.cc and entry.cc, which remember. Thread safety: each thread has its own memory; the bonds that it
// points to are of communicators, on each of which MPI allows one collective at a time. Invariants: what is remembered holds
// as long as the generation is the same (no communicator and no kept type was freed, MPI has not ended, nothing was put in
// the place of the rules), and, where a choice left the call, until its cell has had `last_of_cell` calls, or, where a communicator was
// not used enough yet, until it was; nothing is remembered while calls are counted. Never fails.
#pragma once
#include <atomic>

#include "base/bits.h"
#include "choose/cell.h"
#include "comm/bond.h"
#include "comm/comm.h"
#include "dispatch/args.h"
#include "dispatch/datatype.h"
#include "mpi/library.h"

namespace coco::dispatch {

// Which communicators and types there are: it goes up with each communicator and each kept type that is freed. (Both only go
// up: equal sums are equal summands.)
inline std::uint64_t generation_now() { return comm::generation() + type_generation(); }

// Whether no buffer needs a second look, as null ones, sentinels, and those that both sides share do. alias_bytes: how far behind the
// receive buffer a send buffer is refused (alias.h).
inline bool is_plain_pointer(const Args& args, std::int64_t alias_bytes) {
    const void* const in_place = mpi::lib().constants.in_place;
    const auto* receives = static_cast<const std::byte*>(args.recv.buffer);
    return receives != nullptr && receives != in_place &&
           (args.collective == algorithms::Collective::bcast ||
            (args.send.buffer != nullptr && args.send.buffer != in_place &&
             args.send.buffer != base::displaced(receives, alias_bytes)));
}

// All calls of one collective on a communicator.
struct LeftForGood {
    std::uint64_t generation = 0;
    mpi::Comm comm = {};
    bool is_of(const Args& args) const { return comm == args.comm && generation == comm::generation(); }
};

// The calls that are like one which the choice for its cell has left to the library.
struct LeftByChoice {
    std::uint64_t generation = 0;
    mpi::Comm comm = {};
    mpi::Datatype send_type = {}, recv_type = {};
    std::int64_t send_count = 0, recv_count = 0, alias_bytes = 0;
    std::int32_t ranks = 0;
    choose::Cell* cell = nullptr;
    std::uint64_t last_of_cell = 0;  // of the cell's calls the last for which the choice holds
    bool is_measured = false;        // the cell shall note when each such call begins and ends

    bool is_of(const Args& args) const {
        return comm == args.comm && recv_type == args.recv.type && recv_count == args.recv.count &&
               send_type == args.send.type && send_count == args.send.count &&
               generation == generation_now() && is_plain_pointer(args, alias_bytes) && args.root >= 0 &&
               args.root < ranks && cell->calls < last_of_cell;
    }
};

// The calls that are like one on a communicator which was not used enough yet to be set up.
struct LeftUnused {
    std::uint64_t generation = 0;
    mpi::Comm comm = {};
    mpi::Datatype recv_type = {};
    std::int64_t recv_count = 0;
    comm::UnusedCalls calls;

    // Whether no call is of these any more.
    bool is_over() const {
        return generation != generation_now() || calls.bond->comm != nullptr ||
               calls.bond->weight >= calls.most;
    }
    bool is_of(const Args& args) const {
        return recv_type == args.recv.type && recv_count == args.recv.count && !is_over();
    }
};

// What a thread remembers. It is not in the thread's static storage, which comes off the stacks of all threads, those that know no MPI
// too.
struct LeftCalls {
    // More than one place, for programs that call with a few counts, or on a few communicators, in turns.
    static constexpr int kPlacesLog = 2;
    struct Place {
        LeftForGood for_good;
        LeftByChoice by_choice;
        LeftUnused unused;
    };
    Place places[algorithms::kCollectives][1 << kPlacesLog];

    ~LeftCalls();
    Place& place_of(const Args& args) {
        const auto key = static_cast<std::uint64_t>(args.recv.count) + args.comm.bits;
        return places[static_cast<int>(args.collective)][key * 0x9E3779B97F4A7C15u >> (64 - kPlacesLog)];
    }
};
extern constinit thread_local LeftCalls* t_left_calls;  // null: nothing is remembered

// Whether all calls of all threads go to the library: libcoco is switched off, and counts nothing.
inline constinit std::atomic<bool> g_all_calls_are_left{false};

struct Passing {
    bool passes_on = false;
    choose::Cell* measured_for = nullptr;  // not null: the cell that shall note the call
};
// Asks whether a call goes to the library as earlier ones did, and if so has its cell count it. If not, the call has to be looked at.
inline Passing pass_again(const Args& args) {
    if (t_left_calls == nullptr) return {.passes_on = g_all_calls_are_left.load(std::memory_order_relaxed)};
    LeftCalls::Place& place = t_left_calls->place_of(args);
    if (place.for_good.is_of(args)) return {.passes_on = true};
    if (place.by_choice.is_of(args)) {
        choose::Cell* const cell = place.by_choice.cell;
        ++cell->calls;
        return {.passes_on = true, .measured_for = place.by_choice.is_measured ? cell : nullptr};
    }
    if (place.unused.comm != args.comm) [[likely]]
        return {};
    if (place.unused.is_of(args)) {
        place.unused.calls.bond->weight += place.unused.calls.weight;
        return {.passes_on = true};
    }
    if (place.unused.is_over()) place.unused.comm = {};  // so that the calls to come are not asked in vain
    return {};
}

// Remembers that all such calls on the communicator are handed back, whatever they name. generation: comm::generation() when this
// was found.
void remember_left_for_good(const Args& args, std::uint64_t generation);
// Remembers calls like this one on a communicator that was not used enough yet. generation: generation_now() when its type was read.
void remember_left_unused(const Args& args, const comm::UnusedCalls& calls, std::uint64_t generation);
// Remembers a call that was left by a choice which holds for `last_of_cell` calls of its cell, whatever calls tell.
void remember_left_by_choice(const Args& args, const LeftByChoice& left);

}  // namespace coco::dispatch
