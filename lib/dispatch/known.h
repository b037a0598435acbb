// SPDX-License-Identifier: BSD-3-Clause
//
// Programs make the same few calls again and again. What is to be done with a call is remembered, so that the
// next one like it is not read, judged and chosen for anew: the doors pass it on to the MPI library at once,
// or it goes to exec with its own buffers, root, and counts of about the same size.
//
// Called by the doors, which pass calls on, and by entry.cc. Thread safety: each thread has its own memory;
// the counters that it points to are of communicators, on each of which MPI allows one collective at a time.
// Invariants: what is remembered holds as long as the generation is the same (no communicator and no kept
// type was freed, MPI has not ended, nothing was put in the place of the rules) and its counter is below its
// end; nothing is remembered while calls are counted for the report. Fails: never; without memory the job
// ends, as in every call.
#pragma once
#include <atomic>
#include <bit>
#include <memory>
#include <optional>

#include "base/bits.h"
#include "comm/comm.h"
#include "comm/find.h"
#include "comm/handles.h"
#include "dispatch/args.h"
#include "dispatch/datatype.h"
#include "dispatch/read.h"
#include "exec/call.h"
#include "mpi/library.h"

namespace coco::dispatch {

// Which communicators and types there are: it goes up with each communicator and each kept type that is
// freed. (Both only go up: equal sums are equal summands.)
inline std::uint64_t generation_now() { return comm::generation() + type_generation(); }

// A choice, and what a call needs besides its own arguments to go by it.
struct Chosen {
    comm::Comm* comm;
    choose::Choice choice;
    exec::Call call;  // unset where the choice is the MPI library
    // Where an element begins, from the buffer's address, and its size.
    std::int64_t send_offset_bytes, recv_offset_bytes;
    std::uint64_t send_size_bytes, recv_size_bytes;
    bool takes_counts;  // the counts may differ, as long as the choice is for such blocks
};

struct KnownCall {
    // A call like this one has the same of these.
    std::uint64_t generation = 0;
    mpi::Comm comm = {};
    mpi::Datatype send_type = {}, recv_type = {};
    std::int64_t send_count = 0, recv_count = 0;
    algorithms::Collective collective = {};
    bool passes_on = false;  // to the MPI library
    // Roots are below this. 0: buffers and root may be any.
    std::int32_t ranks = 0;
    // How far behind the receive buffer a send buffer is refused (alias.h).
    std::int64_t alias_bytes = 0;
    // Each such call adds `each` to the counter; this holds while the counter is below `end`. Null: for any
    // number of calls.
    std::uint64_t* counter = nullptr;
    std::uint64_t each = 1, end = 0;
    std::optional<Chosen> chosen = std::nullopt;  // none: such calls are passed on whatever is chosen

    // Whether it holds still, if it is of this generation.
    bool holds() const {
        return (counter == nullptr || *counter < end) &&
               (!chosen || (chosen->comm->choices.leads_to(*chosen->choice.cell) &&
                            (chosen->choice.last_call == UINT64_MAX ||
                             chosen->comm->choices.calls(collective) < chosen->choice.last_call)));
    }
    void count() const {
        if (counter != nullptr) *counter += each;
    }
    // The cell that shall note such calls, if any.
    choose::Cell* measured_for() const {
        return chosen && chosen->choice.is_measured ? chosen->choice.cell : nullptr;
    }
};

// What a thread remembers: 1,024 calls at most, in sets of four, by a hash of their arguments. It is
// allocated by threads that call MPI, as static storage would be taken from the stack of every thread.
class KnownCalls {
  public:
    ~KnownCalls();
    // Returns: a call of this key's set for which `is` holds; null if there is none.
    template <class Is>
    KnownCall* find(std::uint64_t key, Is is) {
        Set* set = sets_[set_of(key)].get();
        if (set == nullptr) return nullptr;
        for (KnownCall& call : set->calls)
            if (is(call)) return &call;
        return nullptr;
    }
    // Puts the call in the place of an older one for which `is_same` holds; else of one that is stale; else
    // of one drawn by chance: where a few more are used in turns than there are places, the oldest is the
    // next to be used. Only on the call's own communicator is asked whether a call holds still: another
    // thread may free any other one meanwhile.
    template <class IsSame>
    void put(std::uint64_t key, const KnownCall& call, IsSame is_same) {
        std::unique_ptr<Set>& set = sets_[set_of(key)];
        if (set == nullptr) set = std::make_unique<Set>();
        KnownCall* place = find(key, is_same);
        if (place == nullptr)
            place = find(key, [&](const KnownCall& other) {
                return other.generation != call.generation || (other.comm == call.comm && !other.holds());
            });
        (place != nullptr ? *place : set->calls[some_way()]) = call;
    }
    bool knows_by_bytes = false;  // see find_by_bytes()

  private:
    static constexpr std::size_t kSetsLog = 8, kWays = 4;
    struct Set {
        KnownCall calls[kWays];
    };
    static std::size_t set_of(std::uint64_t key) { return key * 0x9E3779B97F4A7C15u >> (64 - kSetsLog); }
    std::size_t some_way() {
        random_ = random_ * 1664525 + 1013904223;
        return (random_ >> 16) % kWays;
    }
    std::unique_ptr<Set> sets_[1u << kSetsLog];  // null: nothing was put there
    std::uint32_t random_ = 0;
};
extern constinit thread_local KnownCalls* t_known_calls;  // null: nothing is remembered

// The counts of one size class have at most two keys. (allgatherv has a count of its own in sending alone.)
inline std::uint64_t key_of(const Args& args) {
    const auto counts = static_cast<std::uint64_t>(args.recv.count | args.send.count);
    return args.comm.bits + args.recv.type.bits * 3 + static_cast<std::uint64_t>(std::bit_width(counts)) +
           (static_cast<std::uint64_t>(args.collective) << 40);
}

// Whether no buffer needs a second look, as null ones, sentinels, and those that both sides share do.
inline bool is_plain_pointer(const Args& args, std::int64_t alias_bytes) {
    const void* const in_place = mpi::lib().constants.in_place;
    const auto* receives = static_cast<const std::byte*>(args.recv.buffer);
    return receives != nullptr && receives != in_place &&
           (args.collective == algorithms::Collective::bcast ||
            (args.send.buffer != nullptr && args.send.buffer != in_place &&
             args.send.buffer != base::displaced(receives, alias_bytes)));
}

// Gives the known call other counts than it has. Returns: whether that is all that it needs, and the choice
// may still hold. (By value: a door that passes a call on need not have its arguments in memory.)
bool take_counts(KnownCall& known, std::int64_t send_count, std::int64_t recv_count);

inline bool is_like(const Args& args, KnownCall& known) {
    return known.comm == args.comm && known.recv_type == args.recv.type &&
           known.send_type == args.send.type && known.collective == args.collective &&
           known.generation == generation_now() &&
           ((known.recv_count == args.recv.count && known.send_count == args.send.count) ||
            take_counts(known, args.send.count, args.recv.count)) &&
           (known.ranks == 0 ||
            (is_plain_pointer(args, known.alias_bytes) && args.root >= 0 && args.root < known.ranks)) &&
           known.holds();
}

// Whether all calls of all threads go to the library: libcoco is switched off, and counts nothing.
inline constinit std::atomic<bool> g_all_calls_pass{false};
inline constexpr KnownCall kAnyCall{.passes_on = true};

// Returns: what is known of the call, if that is passed on to the MPI library; null if it has to be looked
// at.
inline const KnownCall* find_passing(const Args& args) {
    if (t_known_calls == nullptr)
        return g_all_calls_pass.load(std::memory_order_relaxed) ? &kAnyCall : nullptr;
    return t_known_calls->find(key_of(args),
                               [&](KnownCall& known) { return known.passes_on && is_like(args, known); });
}

// Returns: what is known of the call, with its own arguments put in; null if it has to be read and chosen
// for. It stays until this thread's next call.
const KnownCall* find_ready(const Args& args);
// The same for a small bcast whose type is not remembered, as those that programs make for one call: its
// bytes alone say what it is like.
const KnownCall* find_by_bytes(const Args& args);

// Remembers a call that was chosen for, if the choice holds for calls like it, and their types are simple
// enough. call: null where it is left to the MPI library. generation: as it was before the types were looked
// up, as another thread may have freed one since. Requires: common is valid.
void remember_chosen(const Args& args, const CommonArguments& common, comm::Comm& comm,
                     const choose::Choice& choice, const exec::Call* call, std::uint64_t generation);
// Remembers that calls with these types and counts are passed on, whatever buffers and root they name, while
// their count is below its end.
void remember_unused(const Args& args, std::uint64_t generation, const comm::UnusedCalls& count);
// Remembers that all calls of this collective on this communicator are passed on.
void remember_closed(const Args& args);
bool is_known_closed(const Args& args);

}  // namespace coco::dispatch
