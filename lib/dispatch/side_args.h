// SPDX-License-Identifier: BSD-3-Clause
//
// One side of a call as the program gave it: which blocks it has, how many elements of which type each, and
// where. Whether that is valid is judged elsewhere (valid.h). Thread safety: pure functions, but for types
// that are looked up (datatype.h).
#pragma once
#include <algorithm>
#include <vector>

#include "comm/comm.h"
#include "dispatch/args.h"
#include "dispatch/datatype.h"

namespace coco::dispatch {

// One side of a call: which blocks, of what type, where.
struct SideArgs {
    const BufferArgs& args;
    std::int32_t blocks;
    bool sized;
    TypeFacts one_type;  // w forms have a type for each block instead
    // Neighbours: blocks to or from nobody; null where there are no neighbours.
    const std::vector<std::int32_t>* nobody = nullptr;

    // An empty block may have no type, or one that was freed.
    TypeFacts facts(std::int32_t block) const {
        if (args.types == nullptr) return one_type;
        return count_of(block) != 0 ? facts_of(args.types[block]) : TypeFacts{};
    }
    mpi::Datatype type_of(std::int32_t block) const {
        return args.types != nullptr ? args.types[block] : args.type;
    }
    std::int64_t count_of(std::int32_t block) const { return args.counts ? args.counts[block] : args.count; }
};

// How many blocks each side has, when every rank sends and receives.
std::int32_t send_blocks_of(algorithms::Collective collective, const comm::Comm& comm);
std::int32_t recv_blocks_of(algorithms::Collective collective, const comm::Comm& comm);

// known: the side's type, if it was looked up before.
SideArgs send_side(const Args& args, const comm::Comm& comm, const TypeFacts* known = nullptr);
SideArgs recv_side(const Args& args, const comm::Comm& comm, const TypeFacts* known = nullptr);

// Displacements count in extents of the type, for w forms in bytes.
inline std::int64_t displacement_of(const SideArgs& side, std::int32_t block, const TypeFacts& type) {
    if (!side.sized) return side.blocks == 1 ? 0 : block * side.args.count * type.extent_bytes;
    return side.args.displacements[block] * (side.args.types != nullptr ? 1 : type.extent_bytes);
}

inline std::uint64_t bytes_of(const SideArgs& side, std::int32_t block) {
    return static_cast<std::uint64_t>(side.count_of(block)) * side.facts(block).size_bytes;
}

}  // namespace coco::dispatch
