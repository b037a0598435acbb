// SPDX-License-Identifier: BSD-3-Clause
//
// One of this rank's buffers made ready for a call. A buffer is used where it is if the schedule can: dense
// blocks, and on the shared heap if other ranks touch it. Blocks with holes, by their layouts, and private
// ones go through a pipe, if the call can have one (exec/pipe.h). Otherwise its blocks go through a copy: in
// the stage ring when they are few, in room on the shared heap where nothing but a copy helps (in place, gaps
// between elements), in private room if no other rank touches it; or the buffer is refused, and all ranks
// hand the call back.
#pragma once
#include <algorithm>
#include <cstdint>

#include "blocks/buffer.h"
#include "blocks/store.h"
#include "stats/stats.h"

namespace coco::blocks {

// The most bytes of one side that are staged without the other ranks' knowing: so both sides and their tables
// fit the stage ring.
inline constexpr std::uint64_t kSideLimitBytes = 120 * 1024;
// Private sides of more bytes go through a pipe where there may be one, in a call of so many ranks: it reads
// them through the kernel, where copies on the stage take up to three times as long. From bench/collective
// --private, 2 and 4 ranks on 2 cores.
inline std::uint64_t piped_above_bytes(std::int32_t ranks) {
    constexpr std::uint64_t kLeast = 24 * 1024, kBlock = 12 * 1024;
    return std::clamp(kBlock * static_cast<std::uint64_t>(ranks), kLeast, kSideLimitBytes);
}

enum class Where : std::uint8_t { user, pipe, ring, shared_room, private_room };
// Whether the side's blocks are the user's own.
inline bool is_users(Where where) { return where <= Where::pipe; }

struct Side {
    Where where = Where::user;
    channel::Piped piped = channel::Piped::shared;  // with Where::pipe; any other side is in shared memory
    stats::Reason refusal = stats::Reason::none;
    std::byte* base = nullptr;      // the address of block 0
    std::int64_t stride_bytes = 0;  // plain forms
    std::span<const BlockAt> blocks;

    // Readers of copies on the stage need not be waited for: the stage is guarded.
    bool is_guarded() const { return where == Where::ring || where == Where::pipe; }
};

// The demands of the schedule and the call on a buffer.
struct Demand {
    bool exposed;               // other ranks touch it
    bool must_copy;             // copy it even so: in place, the call writes over what it still has to send
    stats::Reason if_private;   // the reason to refuse it for if it is exposed and private
    std::uint64_t block_bytes;  // plain forms
    std::uint64_t bytes;        // the size of all blocks together
    // Blocks of more bytes that are private, or have holes, can go through a pipe; 0: of no number.
    std::uint64_t piped_above_bytes = 0;
    // A buffer that cannot be used where it is is copied to the shared heap, of whatever size, while there is
    // room.
    bool copies_any = false;
};

// Whether all blocks of a dense buffer lie on the shared heap.
bool is_shared(const Buffer& buffer, std::uint64_t block_bytes);
// The bytes that the layouts of a buffer take on the stage.
std::uint64_t layouts_bytes(const Buffer& buffer);
// Decides where the side will be. Room on the shared heap is fetched here, ring space is taken
// by the flights.
Side plan_side(Store& store, const Buffer& buffer, const Demand& demand, Which which);
// Gives a copied side its blocks back to back from `base`; sized forms get their table in `blocks`.
void lay_out(Side& side, const Buffer& buffer, std::byte* base, std::uint64_t block_bytes,
             std::vector<BlockAt>& blocks);
// Copies the user's blocks to the side, or the side's to the user, if it is not the user's own.
void fill_side(const Side& side, const Buffer& buffer, std::uint64_t block_bytes);
void empty_side(const Side& side, const Buffer& buffer, std::uint64_t block_bytes);

}  // namespace coco::blocks
