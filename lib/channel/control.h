// SPDX-License-Identifier: BSD-3-Clause
//
// A rank's control block for one communicator: what its node-mates read of it. It lies in the rank's own
// segment, only that rank writes it (but for the doorbell's count of sleepers, the count of leavers and the
// call handed back), and it is never given back to the allocator: a freed communicator's block is used again
// for another one with the epochs going on, so that a late reader of the old communicator still sees monotone
// counters (channel/control_pool.h).
//
//   flag   milestones: (epoch << 20) + milestone, see milestone_value()
//   slots  a ring; call `epoch` is published in slots[epoch % kSlots]
//   tape   a ring of records by which this rank, as the root of bcasts, tells the others: channel/tape.h
//   stage  a ring of bytes: copies of blocks that others read, and tables of displacements
//   told   of the communicator's first rank: what it has learned on earlier ones (choose/journal.h), written
//          before the block is shown
//   shown, read  streams of pieces: how many this rank has shown each other rank in a call (its own entry:
//          shown all of them), and how many of each other rank's it has read; see stream_value()
//
// All offsets in a slot count from the base of the owner's segment.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "channel/sizes.h"
#include "os/cpu.h"
#include "schedule/step.h"
#include "sync/flag.h"

namespace coco::channel {

inline constexpr std::uint64_t kInlineBytes = kSlotBytes - 16;

// How a rank's blocks can be had in this call.
enum class Publish : std::uint8_t {
    inlined,    // scratch blocks in the slot (bcast: the record) itself
    staged,     // scratch blocks in the stage ring
    direct,     // in the buffers (or shared copies of them) that the slot names
    messages,   // neighbours: nowhere; they come as messages
    segmented,  // bcast: scratch segments in the stage ring, filled one after the other
    refuse,     // this rank cannot take part: all hand the call back
    piped,      // exchanges: in memory that peers read in one of the ways below (exec/pipe.h)
    shown,      // over several nodes: those that are left for mates in the send buffer (direct.send), the
                // other scratch blocks where direct.recv says
};

// How peers read the blocks of a rank that has published `piped`.
enum class Piped : std::uint8_t {
    address,  // private and contiguous: through the kernel where all can do that, else in pieces
    shared,   // where they are, as layouts say
    pieces,   // piece by piece, from the ring
};

// Where the layout of a block is, by the owner's offset; 0: the block is contiguous. See blocks/layout.h.
struct LayoutAt {
    std::uint64_t words_at;
    std::int64_t count, extent_bytes;
};

// Where one area of a rank is: block i at `at` + i * stride. Blocks are dense.
struct AreaAt {
    std::uint64_t at;
    std::int64_t stride_bytes;
};

// A slot's body when blocks are read or written in place.
struct DirectBody {
    AreaAt send;  // piped, unless shared: `at` is the address in the owner
    AreaAt recv;
    std::uint64_t
        send_table;  // v and w forms: offset of a BlockAt for each rank; then send.at + displacement
    std::uint64_t recv_table;
    std::uint64_t ring_at;     // piped: where pieces are shown
    std::uint64_t layouts_at;  // piped: offset of a LayoutAt for each block, plain forms: one; 0: none
    Piped piped;
    std::uint64_t send_bytes, recv_bytes;  // plain forms of neighbours: the size of a block
};

struct BlockAt {
    std::int64_t displacement_bytes;
    std::uint64_t bytes;
};

// One entry of a staged v or w form: block j is at scratch + offset. P of them open the staged (or inlined)
// bytes.
struct StagedBlock {
    std::uint32_t offset_bytes;
    std::uint32_t bytes;
};

struct alignas(kSlotBytes) Slot {
    std::atomic<std::uint64_t> epoch{0};  // raised last: what is below belongs to this epoch
    std::uint32_t signature;              // the call's; unequal on two ranks = the program is wrong
    Publish publish;
    std::uint8_t reads_mates : 1;  // large exchanges: 1: this rank can read its mates' private memory
    std::uint8_t size_class : 7;   // v and w forms: of this rank's largest block (bits.h)
    std::uint16_t writer;  // sized or neighbours: mark of the algorithm that writes to peers; 0: none does
    union {
        std::byte inlined[kInlineBytes];
        std::uint64_t scratch_at;
        DirectBody direct;
    };
};
static_assert(sizeof(Slot) == kSlotBytes);

struct alignas(4096) Control {
    sync::Flag flag;
    // Counts in the block of the node's first rank: how many ranks have left the communicators that had this
    // block, in all. Each rank adds one when it frees such a communicator.
    alignas(os::kLineBytes) std::atomic<std::uint64_t> leavers;
    std::atomic<std::int32_t> thread;  // one of the owner's, which is in a call: its first one may have ended
    std::uint64_t tape_at;  // where the owner writes its next record; kept from one communicator to the next
    // In the block of the node's first rank: the exchange that all ranks hand back, as one of them cannot
    // touch its buffers (Channel::hand_back()). That rank writes it before it publishes anything in the
    // exchange, once for a communicator. Every rank reads it in every exchange, so this line holds only what
    // is seldom written.
    alignas(os::kLineBytes) std::atomic<std::uint64_t> handed_back;
    std::uint64_t number;           // the block's number among those of its owner
    const Control* owners_address;  // of the block, in the process that owns it
    Slot slots[kSlots];
    std::atomic<std::uint64_t> shown[kNodeRanks], read[kNodeRanks];  // by rank of the channel
    std::int64_t told[kToldNumbers];
    alignas(4096) std::atomic<std::uint64_t> tape[kTapeBytes / 8];
    std::byte stage[kStageBytes];
};

// Milestones of an epoch in one counter: later epochs are larger than every milestone of earlier ones.
constexpr std::uint64_t milestone_value(std::uint64_t epoch, schedule::Milestone milestone) {
    COCO_CHECK_DEAR(milestone <= schedule::kDone, "kDone is the last milestone of an epoch");
    return (epoch << 20) + milestone;
}
static_assert(schedule::kDone < (1u << 20));

// Counts of a stream in the same way: a stream of a later epoch is beyond every earlier one.
inline constexpr std::uint64_t kStreamPieces = std::uint64_t{1} << 28;  // a stream has fewer
constexpr std::uint64_t stream_value(std::uint64_t epoch, std::uint64_t pieces) {
    COCO_CHECK_DEAR(pieces < kStreamPieces, "a stream has a bounded number of pieces");
    return epoch * kStreamPieces + pieces;
}

}  // namespace coco::channel
