// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks whose type has holes, which the MPI library packs and unpacks; also blocks of absolute addresses,
// from MPI_BOTTOM. Fails: the job ends with a line, as the other ranks are in the call. Thread safety: that
// of a call, which it belongs to.
#pragma once
#include <vector>

#include "blocks/buffer.h"
#include "mpi/handles.h"

namespace coco::dispatch {

// Packs and unpacks blocks of one buffer by the MPI library.
class TypePacker final : public blocks::Packer {
  public:
    struct Block {
        std::byte* at;
        std::int64_t count;
        mpi::Datatype type;
    };
    void pack(std::int32_t block, std::byte* target) const override;
    void unpack(std::int32_t block, const std::byte* source) const override;

    std::vector<Block> blocks;
    mpi::Comm comm{};
    bool by_next_tool =
        false;  // the next tool's functions, or the MPI library's, are called by the names that tools wrap
};

}  // namespace coco::dispatch
