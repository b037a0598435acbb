// SPDX-License-Identifier: BSD-3-Clause
//
// The way in: the functions that the doors (interpose/) call. A call is taken here and answered, or handed
// back to the door, which passes it on to the MPI library. Thread safety: any thread that may call MPI.
#pragma once
#include "comm/comm.h"
#include "dispatch/args.h"
#include "dispatch/inside.h"
#include "dispatch/known.h"
#include "heap/heap.h"
#include "mpi/library.h"
#include "os/clock.h"
#include "stats/stats.h"

namespace coco::choose {
struct Cell;
}

namespace coco::dispatch {

// How a call ended here, and what to count of it.
struct TakeResult {
    bool taken = false;                    // answered here; else the door passes it on
    int error = mpi::kSuccess;             // to be raised when it is answered
    std::uint64_t begin_ns = 0;            // 0: nothing is counted
    choose::Cell* measured_for = nullptr;  // not null: the cell that shall note the call
    std::uint64_t measured_from_ns = 0;    // when the call began, if it is measured; 0: not known yet
    stats::Call count;  // unset where nothing is counted: clearing it took a tenth of a small bcast
};

// Out of memory ends the job: an exception would leave the other ranks waiting for this one.
TakeResult take(const Args& args) noexcept;
// Makes small calls on MPI_COMM_WORLD, so that the program's first one finds all that a call makes once, and
// forgets that they were made. Called in MPI_Init, by all ranks or none. Requires: the communicator is open,
// and nobody counts calls.
void rehearse(comm::Comm& world);
// Counts and notes a call that was handed back, once the MPI library has answered it.
void count_handed_back(TakeResult& taken);

// Raises an error as the MPI library would. Returns: the error, if the handler returns.
int raise_error(mpi::Comm comm, int error);

// The path of a call that is known to be passed on (known.h).
template <class PassOn>
int hand_on(const KnownCall& known, PassOn pass_on) {
    heap::tend();
    Inside inside;
    known.count();
    choose::Cell* const cell = known.measured_for();
    if (cell == nullptr) [[likely]]
        return pass_on();
    const std::uint64_t begin_ns = os::now_ns();
    const int result = pass_on();
    cell->note(begin_ns, os::now_ns());
    return result;
}

// The one path of every other call. pass_on: calls the MPI library (or the next tool) with the program's own
// arguments.
template <class PassOn>
int enter(const Args& args, PassOn pass_on) {
    int error;
    {
        Inside inside;
        TakeResult taken = take(args);
        if (!taken.taken) [[unlikely]] {
            int result = pass_on();
            if (taken.begin_ns != 0 || taken.measured_for != nullptr) count_handed_back(taken);
            return result;
        }
        error = taken.error;
    }
    // Outside: the program's error handler may call MPI again.
    return error != mpi::kSuccess ? raise_error(args.comm, error) : mpi::kSuccess;
}

}  // namespace coco::dispatch
