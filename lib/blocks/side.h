// SPDX-License-Identifier: BSD-3-Clause
//
// One of this rank's buffers made ready for a call. A buffer is used where it is if the schedule can: dense
// blocks, and on the shared heap if other ranks touch it. Else its blocks go through a copy: in the stage
// ring when they are few, in room on the shared heap where only we can help it (in place, gaps between
// elements), in private room if no other rank looks. What is left is refused, and all ranks hand the call
// back.
#pragma once
#include <cstdint>

#include "blocks/buffer.h"
#include "blocks/store.h"
#include "stats/stats.h"

namespace coco::blocks {

// Most bytes of one side that are staged without the other ranks' knowing: so both sides and their tables
// fit.
inline constexpr std::uint64_t kSideLimitBytes = 120 * 1024;

enum class Where : std::uint8_t { user, ring, shared_room, private_room };

struct Side {
    Where where = Where::user;
    stats::Reason refusal = stats::Reason::none;
    std::byte* base = nullptr;      // of block 0
    std::int64_t stride_bytes = 0;  // plain forms
    std::span<const BlockAt> blocks;

    // Readers of a ring copy need not be waited for: the ring is guarded.
    bool is_guarded() const { return where == Where::ring; }
};

// What the schedule and the call ask of a buffer.
struct Demand {
    bool exposed;               // other ranks touch it
    bool must_copy;             // even so: in place, the call writes over what it still has to send
    stats::Reason if_private;   // the reason to refuse with
    std::uint64_t block_bytes;  // plain forms
    std::uint64_t bytes;        // of all blocks together
};

// Whether all blocks of a dense buffer lie on the shared heap.
bool is_shared(const Buffer& buffer, std::uint64_t block_bytes);
// Decides where the side will be. Room on the shared heap is fetched here, ring space is taken by
// place_in_ring.
Side plan_side(Store& store, const Buffer& buffer, const Demand& demand, Which which);
// Gives a copied side its blocks back to back from `base`; sized forms get their table in `blocks`.
void lay_out(Side& side, const Buffer& buffer, std::byte* base, std::uint64_t block_bytes,
             std::vector<BlockAt>& blocks);
// Copies the user's blocks to the side, or the side's to the user. Nothing for Where::user.
void fill_side(const Side& side, const Buffer& buffer, std::uint64_t block_bytes);
void empty_side(const Side& side, const Buffer& buffer, std::uint64_t block_bytes);

}  // namespace coco::blocks
