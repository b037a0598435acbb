// SPDX-License-Identifier: BSD-3-Clause
//
// One call as exec sees it: bytes and blocks, MPI's arguments read already.
// Common facts are equal on all ranks by MPI's rules, local facts are this rank's own. Only the first may
// decide which path is taken; the second reach others through the slots.
#pragma once
#include <cstdint>

#include "algorithms/algorithm.h"
#include "blocks/buffer.h"
#include "comm/comm.h"
#include "stats/stats.h"

namespace coco::exec {

struct CommonFacts {
    algorithms::Collective collective;
    std::int32_t root = 0;
    std::uint64_t block_bytes = 0;  // alltoall, allgather; 0 for v and w forms
    bool sized = false;             // a v or w form: blocks have sizes of their own
    bool in_place = false;
};

struct LocalFacts {
    blocks::Buffer send;
    blocks::Buffer recv;
    std::uint64_t bytes = 0;  // bcast: the length of this rank's buffer
};

struct Call {
    CommonFacts common;
    LocalFacts local;
};

struct Outcome {
    stats::Reason reason = stats::Reason::none;  // not none: nothing was moved, all ranks hand back
    bool staged = false;                         // this rank copied a buffer to take part
    bool truncated = false;                      // some rank sent more than this one receives
    bool lacking = false;                        // bcast: the root sent less than this rank has room for
    bool closes = false;                         // all ranks hand back the calls that follow
    const algorithms::Algorithm* ran = nullptr;  // not always the one asked for
    int size_class = -1;                    // v and w forms on one node: of the largest block of all ranks
    std::uint64_t largest_block_bytes = 0;  // the same forms over several nodes: that largest block

    // For a bcast's receiver: compares what the root sent with the receiver's own room.
    void measure(std::uint64_t sent_bytes, std::uint64_t room_bytes) {
        truncated = sent_bytes > room_bytes;
        lacking = sent_bytes < room_bytes;
    }
};

// Runs the call by an algorithm to its end, on a lane of the communicator on which no other call is. Where a
// schedule meets a larger block, or a graph, for the first time, all ranks of the communicator make scratch,
// or shares of the graph, together, by collectives of the MPI library. Requires: comm is open; all ranks
// call with equal common facts, algorithm and parameters. No exception leaves it: the other ranks would wait
// for ever.
Outcome run(comm::Comm& comm, comm::Lane& lane, const Call& call, const algorithms::Algorithm& algorithm,
            const algorithms::Parameters& parameters) noexcept;

// Hands a call back whose arguments on this rank are such that nobody can tell whether MPI would take them.
// That is right where all ranks do so. Ends the job if some do not: they would wait for this rank for ever.
void refuse_together(comm::Comm& comm, algorithms::Collective collective);
// Ends the job: all neighbours have to name one block size, and this rank names two.
[[noreturn]] void stop_two_sizes(const comm::Comm& comm, algorithms::Collective collective);

}  // namespace coco::exec
