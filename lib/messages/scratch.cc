// SPDX-License-Identifier: BSD-3-Clause
#include "messages/scratch.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "heap/heap.h"
#include "heap/segment.h"
#include "mpi/library.h"

namespace coco::messages {

bool agree_on_scratch(mpi::Comm comm, Post& post, bool shared, Fit& fit, std::int32_t blocks,
                      std::uint64_t block_bytes) {
    block_bytes = std::max<std::uint64_t>(block_bytes, 1);
    if (block_bytes <= fit.fitting_block_bytes) return true;
    if (block_bytes >= fit.failing_block_bytes) return false;
    std::uint64_t most = std::bit_ceil(block_bytes);
    // Some memory even for a schedule without scratch, so that take_scratch() always has some to give.
    const std::uint64_t needed_bytes = std::max<std::uint64_t>(static_cast<std::uint64_t>(blocks) * most, 1);
    const std::uint64_t bytes = base::round_up(needed_bytes, heap::kSurelyShared);
    std::uint64_t mine = post.grow(post.scratch, Post::kHalves * bytes, shared), all = 0;
    mpi::lib().Allreduce(&mine, &all, 1, mpi::lib().uint64, mpi::lib().min, comm);
    (all ? fit.fitting_block_bytes : fit.failing_block_bytes) = all ? most : block_bytes;
    return all;
}

std::byte* take_scratch(channel::Channel& channel, Post& post) {
    COCO_CHECK(post.scratch.memory != nullptr, "ranks agree on scratch before they take it");
    const std::uint64_t epoch = channel.epoch();
    if (epoch > Post::kHalves && !channel.wait_all_done(epoch - Post::kHalves)) return nullptr;
    return Post::half(channel, post.scratch);
}

}  // namespace coco::messages
