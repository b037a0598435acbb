// SPDX-License-Identifier: BSD-3-Clause
//
// A buffer of the caller's as a call sees it: where its blocks are, MPI's arguments read already. Made by
// dispatch, read by exec. Thread safety: none; a buffer belongs to a call.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bits.h"
#include "base/check.h"
#include "base/index.h"
#include "blocks/layout.h"
#include "channel/control.h"

namespace coco::blocks {

using channel::BlockAt;
using channel::StagedBlock;

// Turns blocks of a datatype with holes into dense bytes and back.
class Packer {
  public:
    virtual void pack(std::int32_t block, std::byte* target) const = 0;
    virtual void unpack(std::int32_t block, const std::byte* source) const = 0;

  protected:
    ~Packer() = default;
};

struct Buffer {
    std::byte* base = nullptr;             // first byte of block 0's data
    std::int64_t stride_bytes = 0;         // from block to block; plain forms
    std::uint64_t block_bytes = 0;         // plain forms of neighbours: size of each block on this side
    std::span<const BlockAt> blocks = {};  // v and w forms: by rank (neighbours: by edge), from base
    std::uint64_t total_bytes = 0;         // v and w forms: size of all blocks together
    std::int32_t block_count = 0;
    const Packer* packer = nullptr;  // the blocks are not dense: without layouts base and stride mean nothing
    bool gapped = false;             // with packer: elements are contiguous, only gaps lie between them
    bool on_device = false;  // with packer: in memory of a device, which this processor must not touch
    // With packer: how each block lies in memory, in plain forms one for all; base, stride and displacements
    // then name the lowest byte of each block's first element. None: only the packer knows.
    std::span<const BlockLayout> layouts = {};

    bool has_layouts() const { return !layouts.empty(); }
    BlockLayout layout_of_block(std::int32_t block) const {
        if (layouts.empty()) return {};
        COCO_CHECK_DEAR(block >= 0 && (layouts.size() == 1 || base::index(block) < layouts.size()),
                        "each block has a layout, or all have one");
        return layouts[layouts.size() == 1 ? 0 : base::index(block)];
    }
};

// Calls act(layout, whether it is not the one before) for each layout of a buffer.
template <class Act>
void for_each_layout(const Buffer& buffer, Act act) {
    const std::int64_t* last = nullptr;
    for (const BlockLayout& layout : buffer.layouts) {
        act(layout, layout.words != nullptr && layout.words != last);
        last = layout.words;
    }
}

// The class of the largest of these blocks (bits.h).
inline int largest_class(std::span<const BlockAt> blocks) {
    std::uint64_t largest = 0;
    for (const BlockAt& block : blocks) largest = block.bytes > largest ? block.bytes : largest;
    return base::size_class(largest);
}

// A block by its address in this process.
struct Block {
    std::byte* at;
    std::uint64_t bytes;
    BlockLayout layout = {};
};

}  // namespace coco::blocks
