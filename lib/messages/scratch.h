// SPDX-License-Identifier: BSD-3-Clause
//
// Scratch of schedules over several nodes: memory on the shared heap, which all ranks agree that they have.
// Called by exec's flights. Thread safety: that of the channel.
#pragma once
#include "messages/post.h"
#include "mpi/handles.h"

namespace coco::messages {

// The block sizes for which all ranks are known to have scratch, or not to have it. Plain forms and v and w
// forms ask for different numbers of blocks, so that each has its own answer.
struct Fit {
    std::uint64_t fitting_block_bytes = 0;
    std::uint64_t failing_block_bytes = UINT64_MAX;
};

// The blocks of scratch that a schedule wants on this rank.
struct ScratchBlocks {
    std::int32_t blocks;  // each rank its own number
    std::uint64_t block_bytes;
    bool shared;  // they must be on the shared heap
};

// Makes room for these blocks, whose size is the same on all ranks, and hears whether all ranks have it.
// Asks the others, by a collective of the MPI library, only when the blocks are larger than any that `fit`
// met before: all ranks know alike when that is. Returns: the same on all ranks. Requires: `fit` goes with
// their number; all ranks of the communicator call it in the same call.
bool agree_on_scratch(mpi::Comm comm, channel::Channel& channel, Post& post, Fit& fit,
                      const ScratchBlocks& wanted);
// The half of this epoch; waits until no mate touches it any more. Where the schedule wants no scratch, some
// address that is not to be used. Requires: agree_on_scratch() said yes.
std::byte* take_scratch(channel::Channel& channel, Post& post);

}  // namespace coco::messages
