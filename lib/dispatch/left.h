// SPDX-License-Identifier: BSD-3-Clause
//
// The short way of calls that go to the MPI library as earlier ones of this thread did. Some of the library's small calls take
// 0.1 to 0.3 us, of which a look at what is remembered of calls (repeat.h) would take a sixth. The doors ask here first.
//
// Called by the doors, and by repeat.cc and entry.cc, which remember. Thread safety: each thread has its own. Invariant: what is
// remembered holds as long as no communicator and no type was freed and MPI has not ended. Never fails.
#pragma once
#include "choose/cell.h"
#include "comm/comm.h"
#include "dispatch/args.h"
#include "dispatch/datatype.h"
#include "heap/heap.h"
#include "mpi/library.h"

namespace coco::dispatch {

// Which communicators and types there are: it goes up with each that is freed. (Both only go up: equal sums are equal summands.)
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

    bool is_of(const Args& args) const {
        return comm == args.comm && recv_type == args.recv.type && recv_count == args.recv.count &&
               send_type == args.send.type && send_count == args.send.count &&
               generation == generation_now() && is_plain_pointer(args, alias_bytes) && args.root >= 0 &&
               args.root < ranks && cell->calls < last_of_cell;
    }
};

// What a thread remembers. It is not in the thread's static storage, which comes off the stacks of all threads, those that know no MPI
// too.
struct LeftCalls {
    static constexpr std::size_t kPlaces = 4;  // for programs that call with a few counts in turns
    LeftForGood for_good[algorithms::kCollectives];
    LeftByChoice by_choice[algorithms::kCollectives][kPlaces];

    ~LeftCalls();
    static std::size_t place_of(const Args& args) {
        const auto count = static_cast<std::uint64_t>(args.recv.count) + args.comm.bits;
        return count * 0x9E3779B97F4A7C15u >> 62;
    }
};
extern constinit thread_local LeftCalls* t_left_calls;  // null: nothing is remembered

// Whether this call goes to the library as earlier ones did; its cell has counted it then. False: it has to be looked at.
inline bool is_left_again(const Args& args) {
    LeftCalls* const left = t_left_calls;
    if (left == nullptr) return false;
    const int collective = static_cast<int>(args.collective);
    if (left->for_good[collective].is_of(args)) return true;
    const LeftByChoice& one = left->by_choice[collective][LeftCalls::place_of(args)];
    if (!one.is_of(args)) return false;
    ++one.cell->calls;
    return true;
}

// Remembers that all such calls on this communicator are handed back, whatever they name, since a communicator of such a
// generation.
void leave_again_for_good(const Args& args, std::uint64_t generation);
// Remembers a call that was left by a choice which holds until its cell's sizes change, or has had so many calls.
void leave_again_by_choice(const Args& args, const LeftByChoice& left);

}  // namespace coco::dispatch
