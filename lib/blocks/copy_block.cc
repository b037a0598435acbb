// SPDX-License-Identifier: BSD-3-Clause
#include "blocks/copy_block.h"

#include "base/check.h"
#include "os/cpu.h"

namespace coco::blocks {

void copy_streaming(std::byte* target, const std::byte* source, std::size_t bytes) {
    COCO_CHECK_DEAR(target == source || target + bytes <= source || source + bytes <= target,
                    "blocks that are copied do not overlap");
    constexpr std::size_t kLine = os::kStreamedBytes;
    std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(target) % kLine) % kLine;
    if (bytes < 16 * kLine || target == source)
        return copy_block(target, source, target == source ? 0 : bytes);
    std::memcpy(target, source, head);
    std::size_t lines = (bytes - head) / kLine;
    os::stream_lines(target + head, source + head, lines);
    std::size_t done = head + lines * kLine;
    std::memcpy(target + done, source + done, bytes - done);
    os::end_streaming();
}

}  // namespace coco::blocks
