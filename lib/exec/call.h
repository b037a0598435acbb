// SPDX-License-Identifier: BSD-3-Clause
//
// One call as exec sees it: bytes and blocks, MPI's arguments read already.
// Common facts are equal on all ranks by MPI's rules, local facts are this rank's own. Only the first may
// decide which path is taken; the second reach others through the slots.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "algorithms/algorithm.h"
#include "comm/comm.h"
#include "stats/stats.h"

namespace coco::exec {

// Turns blocks of a datatype with holes into dense bytes and back.
class Packer {
  public:
    virtual void pack(std::int32_t block, std::byte* target) const = 0;
    virtual void unpack(std::int32_t block, const std::byte* source) const = 0;

  protected:
    ~Packer() = default;
};

// One of this rank's buffers.
struct Buffer {
    std::byte* base = nullptr;                      // first byte of block 0's data
    std::int64_t stride_bytes = 0;                  // from block to block; plain forms
    std::uint64_t block_bytes = 0;                  // plain forms of neighbours: of each block on this side
    std::span<const channel::BlockAt> blocks = {};  // v and w forms: by rank (neighbours: edge), from base
    std::uint64_t total_bytes = 0;                  // v and w forms: of all blocks
    std::int32_t block_count = 0;
    const Packer* packer = nullptr;  // the blocks are not dense: base and stride mean nothing
    bool gapped = false;             // with packer: elements are contiguous, only gaps lie between them
};

struct CommonFacts {
    algorithms::Collective collective;
    std::int32_t root = 0;
    std::uint64_t block_bytes = 0;  // alltoall, allgather; 0 for v and w forms
    bool sized = false;             // a v or w form: blocks have sizes of their own
    bool in_place = false;
};

struct LocalFacts {
    Buffer send;
    Buffer recv;
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
    const algorithms::Algorithm* ran = nullptr;  // not always the one asked for

    // A bcast's receiver: what the root sent, and its own room.
    void measure(std::uint64_t sent_bytes, std::uint64_t room_bytes) {
        truncated = sent_bytes > room_bytes;
        lacking = sent_bytes < room_bytes;
    }
};

// Runs the call by an algorithm. Requires: comm is open; all ranks call with equal common facts, algorithm
// and parameters. No exception leaves it: the other ranks would wait for ever.
Outcome run(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
            const algorithms::Parameters& parameters) noexcept;

// Hands a call back whose arguments on this rank are such that nobody can tell whether MPI would take them:
// right where all ranks do so. Ends the job if some do not: they would wait for this rank for ever.
void refuse_together(comm::Comm& comm, algorithms::Collective collective);
// Ends the job: neighbours that all have to name one size, and this rank names two.
[[noreturn]] void stop_lopsided(const comm::Comm& comm, algorithms::Collective collective);

}  // namespace coco::exec
