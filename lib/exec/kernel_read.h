// SPDX-License-Identifier: BSD-3-Clause
//
// A block in private memory of another process is read through the kernel, straight to where it is received.
// Used by exec's flights. Thread safety: that of the channel. Fails: by its answer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "blocks/buffer.h"
#include "channel/channel.h"

namespace coco::exec {

// Reads bytes of a peer's contiguous private block, at an address of its process, to a block of this rank,
// which may have holes. room: kept by the caller for the next read. Returns: false where the kernel refuses;
// a part may be read. Requires: as Channel::read_private().
[[nodiscard]] bool read_through_kernel(channel::Channel& channel, std::int32_t peer, const std::byte* from,
                                       blocks::Block to, std::uint64_t bytes, std::vector<std::byte>& room);

}  // namespace coco::exec
