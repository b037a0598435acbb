// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/valid.h"

#include "mpi/library.h"

namespace coco::dispatch {
namespace {

// Whether empty blocks may have no type.
bool takes_nothing_of_no_type() { return mpi::lib().manners.takes_nothing_of_no_type; }

// For a block of a w form. The type of an empty block is not looked into: it may have been freed.
bool has_valid_type(const SideArgs& side, std::int32_t block) {
    if (side.count_of(block) != 0) return side.facts(block).valid;
    return takes_nothing_of_no_type() || side.args.types[block] != mpi::lib().datatype_null;
}

}  // namespace

bool counts_are_valid(const SideArgs& side) {
    if (side.blocks == 0) return true;
    // Neighbours may send nothing, and name no type for it, where the MPI library takes that.
    if (side.args.types == nullptr && !side.one_type.valid)
        return takes_nothing_of_no_type() && side.nobody != nullptr && !side.sized && side.args.count == 0;
    if (side.sized && (!side.args.counts || !side.args.displacements)) return false;
    for (std::int32_t i = 0; i < (side.sized ? side.blocks : 1); ++i)
        if (side.count_of(i) < 0 || (side.args.types != nullptr && !has_valid_type(side, i))) return false;
    return true;
}

bool buffer_is_valid(const SideArgs& side) {
    if (side.args.buffer != nullptr) return true;
    for (std::int32_t i = 0; i < (side.sized ? side.blocks : std::min(side.blocks, 1)); ++i) {
        TypeFacts type = side.facts(i);
        if (side.count_of(i) != 0 && type.size_bytes != 0 &&
            displacement_of(side, i, type) + type.offset_bytes == 0)
            return false;
    }
    return true;
}

bool amounts_agree(const Args& args, const SideArgs& send, const SideArgs& recv) {
    return recv.sized || is_neighbor(args.collective) || bytes_of(send, 0) == bytes_of(recv, 0);
}

}  // namespace coco::dispatch
