// SPDX-License-Identifier: BSD-3-Clause
//
// How large the rings and tables are that ranks of a node share. The protocols hold for any sizes: the model
// checker of the tests has a header of its own in this one's place, with rings of two, so that they come
// round in few steps.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coco::channel {

inline constexpr std::uint64_t kSlots = 16;
inline constexpr std::uint64_t kSlotBytes = 2048;
inline constexpr std::uint64_t kTapeBytes = 32 * 1024;
inline constexpr std::uint64_t kStageBytes = 256 * 1024;
inline constexpr std::uint64_t kNodeRanks = 512;     // a channel with streams has no more ranks
inline constexpr std::uint64_t kToldNumbers = 1024;  // of what a communicator's first rank has learned before
inline constexpr std::uint64_t kRingSectors = 64;    // the books of a ring are kept by sectors

inline constexpr std::uint64_t kDirectoryEntries = 65'536;  // as many communicators as Open MPI has
// The first entries are for the few communicators of most programs, which then touch few pages: an identity
// has so many places there.
inline constexpr std::uint64_t kFirstEntries = 64;
inline constexpr std::uint64_t kNearEntries = 8;

// The pool looks for a free block once more than so many are retired: those retired last are likely to be in
// use by a mate that is late.
inline constexpr std::size_t kRetiredRest = 4;
// When a block is retired, the pool looks whenever more than so many are.
inline constexpr std::size_t kRetiredMany = 16;

}  // namespace coco::channel
