// SPDX-License-Identifier: BSD-3-Clause
//
// The way in: the functions that the doors (interpose/) call. A call is taken here and answered, or handed back to
// the door, which passes it on to the MPI library. Thread safety: any thread that may call MPI.
#pragma once
#include "comm/bond.h"
#include "dispatch/args.h"
#include "dispatch/known.h"
#include "heap/heap.h"
#include "mpi/library.h"
#include "os/clock.h"
#include "stats/stats.h"

namespace coco::choose {
struct Cell;
}

namespace coco::dispatch {

// Not 0: this thread is inside one of our doors. A call that comes in now is passed on: it was seen already, or is
// our own.
extern constinit thread_local int t_inside;

struct Inside {
    Inside() { ++t_inside; }
    ~Inside() { --t_inside; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
};

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

// Around MPI_Init and its sisters: settings are read and checked, then the MPI library starts; a wrong
// setting ends the job with one line. Requires (after_init): all ranks of the world call it; they agree there
// that they have equal settings.
void before_init();
void after_init();
// Around MPI_Session_init. A program of sessions alone has no MPI_Finalize: its report is made when it exits.
void before_session_init();
void after_session_init(mpi::Session session);
// Called instead where another tool opens a session within one of these functions.
void note_session();
// Ends a communicator by pass_on, which is MPI_Comm_free or MPI_Comm_disconnect.
int end_communicator(int (*pass_on)(void*), void* comm);
// Runs a function that makes a communicator from a parent, on all ranks of the parent: pass_on calls it and puts the
// new communicator into `made`. (Functions that duplicate one need no door: MPI copies attributes.)
template <class PassOn>
int make_communicator(mpi::Comm parent, const void* made, PassOn pass_on) {
    if (t_inside != 0) return pass_on();
    Inside inside;
    const int result = pass_on();
    if (result == mpi::kSuccess) comm::bind_child(mpi::narrow(parent), mpi::load<mpi::Comm>(made));
    return result;
}
// Called before MPI_Comm_idup of Open MPI.
void before_idup();
// Called before MPI_Finalize: makes the report, and frees what we own of MPI.
void before_finalize();
// Called when it has returned: gives back the memory of other ranks, if MPI has ended and no session was ever opened.
void after_finalize();

}  // namespace coco::dispatch
