// SPDX-License-Identifier: BSD-3-Clause
#include "messages/scratch.h"

#include <bit>

#include "base/check.h"
#include "base/index.h"
#include "heap/heap.h"
#include "heap/segment.h"
#include "mpi/library.h"

namespace coco::messages {

bool agree_on_scratch(mpi::Comm comm, channel::Channel& channel, Post& post, Fit& fit,
                      const ScratchBlocks& wanted) {
    const auto [blocks, block_bytes, shared] = wanted;
    COCO_CHECK_DEAR(blocks >= 0, "a schedule wants some blocks of scratch, or none");
    post.has_agreed_on_scratch = false;
    if (block_bytes >= fit.failing_block_bytes) return false;
    if (block_bytes > fit.fitting_block_bytes) {
        std::uint64_t most = std::bit_ceil(block_bytes);
        std::uint64_t bytes = base::round_up(base::index(blocks) * most, heap::kSurelyShared);
        const bool all =
            mpi::on_all_ranks(comm, post.grow(channel, post.scratch, Post::kHalves * bytes, shared));
        (all ? fit.fitting_block_bytes : fit.failing_block_bytes) = all ? most : block_bytes;
        if (!all) return false;
    }
    return post.has_agreed_on_scratch = true;
}

std::byte* take_scratch(channel::Channel& channel, Post& post) {
    static std::byte none;
    COCO_CHECK(post.has_agreed_on_scratch, "ranks agree on scratch before they take it");
    const std::uint64_t epoch = channel.epoch();
    if (epoch > Post::kHalves) channel.wait_all_done(epoch - Post::kHalves);
    COCO_CHECK_DEAR(post.scratch.bytes % Post::kHalves == 0, "scratch has two halves");
    return post.scratch.memory != nullptr ? Post::half(channel, post.scratch) : &none;
}

}  // namespace coco::messages
