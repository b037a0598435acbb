// SPDX-License-Identifier: BSD-3-Clause
//
// From a handle to the state of its communicator, which is set up once enough calls have been made on it.
// Called by dispatch, for each collective call. Thread safety: any thread; MPI allows one collective at a
// time on a communicator. Fails: never; what cannot be served is closed (Comm::closed).
#pragma once
#include "mpi/handles.h"

#include <cstdint>

#include "comm/comm.h"

namespace coco::comm {

// The state of a communicator, made when first asked for. Where all ranks of the world are on one node a
// state of this thread's stands in for it until enough calls have been counted (Comm::stands_in). Returns:
// never null; it holds until this thread's next of(). Requires: a valid communicator.
Comm* of(mpi::Comm handle);
// Lives around MPI_Comm_free and MPI_Comm_disconnect: collectives that delete functions call on the
// communicator meanwhile are left to the MPI library. (Its state may be gone, and an attribute that is set
// now is never deleted.)
class EndingScope {
  public:
    explicit EndingScope(mpi::Comm handle);
    ~EndingScope();
    // Whether this thread is ending the communicator. A delete function may end another one meanwhile.
    static bool has(mpi::Comm handle);
    EndingScope(const EndingScope&) = delete;
    EndingScope& operator=(const EndingScope&) = delete;

  private:
    const mpi::Comm handle_;
    const EndingScope* const outer_;
};

// Counts a collective call on a communicator that is not settled, and sets the communicator up when its time
// has come. block_bytes: the block size of plain alltoalls and allgathers, equal on all ranks by MPI's rules;
// 0 for others. Returns: its state, if there is one now, else `comm`. Requires: `comm` is from of(); all
// ranks of the communicator call it in the same collective.
Comm* count_call(Comm& comm, algorithms::Collective collective, std::uint64_t block_bytes);
// Calls on a communicator without a state that weigh alike: each adds `each` to its weight. While that is
// below `end` it needs no state.
struct UnusedCalls {
    std::uint64_t* weight = nullptr;
    std::uint64_t each = 1, end = 0;
};
// The calls like one that count_call() has counted, and made no state for.
UnusedCalls unused_calls(const Comm& stand_in, algorithms::Collective collective, std::uint64_t block_bytes);
// Opens MPI_COMM_WORLD where all its ranks are on one node, so that its first call pays for nothing. Called
// in MPI_Init on all ranks. Returns: its state, if it is open. Requires: bind_world().
Comm* open_world();
// Leaves all calls that follow on the communicator to the MPI library, as buffers in memory of devices are
// among them. Requires: all ranks do so in the same call.
void close_for_devices(Comm& comm);

}  // namespace coco::comm
