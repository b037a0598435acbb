// SPDX-License-Identifier: BSD-3-Clause
//
// In the place of lib/channel/sizes.h: as small as the protocols allow, so that all rings come round soon.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coco::channel {

inline constexpr std::uint64_t kSlots = 2;
inline constexpr std::uint64_t kSlotBytes = 128;
inline constexpr std::uint64_t kTapeBytes = 64;
inline constexpr std::uint64_t kStageBytes = 128;
inline constexpr std::uint64_t kNodeRanks = 3;
inline constexpr std::uint64_t kToldNumbers = 2;
inline constexpr std::uint64_t kRingSectors = 2;

inline constexpr std::uint64_t kDirectoryEntries = 4;
inline constexpr std::uint64_t kFirstEntries = 2;
inline constexpr std::uint64_t kNearEntries = 1;

inline constexpr std::size_t kRetiredRest = 0;
inline constexpr std::size_t kRetiredMany = 0;

}  // namespace coco::channel
