// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/type_packer.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include "dispatch/datatype.h"
#include "mpi/library.h"

namespace coco::dispatch {
namespace {

// In the midst of a call there is no way back to MPI: the other ranks are in it.
[[noreturn]] void stop_at(const char* what) {
    mpi::stop_job(mpi::lib().comm_world, mpi::lib().constants.err_other,
                  base::Text() << what << ": libcoco cannot go on (COCO_DISABLE=1 leaves it out)");
}

// MPI_Pack and MPI_Unpack take an int of elements, and an int of bytes, at a time. Only the functions with _c
// take an element that is larger than that.
bool packs_large() { return mpi::lib().Pack_c != nullptr && mpi::lib().Unpack_c != nullptr; }

// Where elements lie that are to be packed, by an address that is not null. MPICH's MPI_Pack and MPI_Unpack
// refuse a null address even with a type of absolute addresses: the same elements are then named from another
// address, by a type that is made for this one call. Were it kept as an attribute of the program's type, that
// would never be freed: MPI counts every type that is made of it as a use of it.
class NotNull {
  public:
    NotNull(std::byte* at, mpi::Datatype type) : at_(at), type_(type) {
        if (at != nullptr) return;
        const int one = 1;
        const mpi::Aint behind = -kElsewhere;
        made_ = mpi::lib().Type_create_hindexed(1, &one, &behind, type, &type_) == mpi::kSuccess &&
                mpi::lib().Type_commit(&type_) == mpi::kSuccess;
        at_ = base::displaced(at, kElsewhere);
    }
    ~NotNull() {
        if (made_) mpi::lib().Type_free(&type_);
    }
    NotNull(const NotNull&) = delete;
    NotNull& operator=(const NotNull&) = delete;

    std::byte* at() const { return at_; }
    mpi::Datatype type() const { return type_; }

  private:
    static constexpr mpi::Aint kElsewhere = 4096;
    std::byte* at_;
    mpi::Datatype type_;
    bool made_ = false;
};

// The MPI library's function, or the next tool's of that name.
template <class Function>
Function function_for(bool by_next_tool, const char* name, Function librarys) {
    void* next = by_next_tool ? mpi::next_function(name) : nullptr;
    return next != nullptr ? reinterpret_cast<Function>(next) : librarys;
}

// Of a portion: what the library's function says, and how many bytes it has packed or unpacked.
struct Moved {
    int rc;
    std::uint64_t bytes;
};

Moved pack_some(const TypePacker& packer, const NotNull& from, int count, std::byte* target,
                std::uint64_t bytes) {
    if (bytes > INT_MAX) {
        mpi::Count done = 0;
        const int rc = function_for(packer.by_next_tool, "MPI_Pack_c", mpi::lib().Pack_c)(
            from.at(), count, from.type(), target, static_cast<mpi::Count>(bytes), &done, packer.comm);
        return {rc, static_cast<std::uint64_t>(done)};
    }
    int done = 0;
    const int rc = function_for(packer.by_next_tool, "MPI_Pack", mpi::lib().Pack)(
        from.at(), count, from.type(), target, static_cast<int>(bytes), &done, packer.comm);
    return {rc, static_cast<std::uint64_t>(done)};
}

Moved unpack_some(const TypePacker& packer, const std::byte* source, std::uint64_t bytes, const NotNull& to,
                  int count) {
    if (bytes > INT_MAX) {
        mpi::Count done = 0;
        const int rc = function_for(packer.by_next_tool, "MPI_Unpack_c", mpi::lib().Unpack_c)(
            source, static_cast<mpi::Count>(bytes), &done, to.at(), count, to.type(), packer.comm);
        return {rc, static_cast<std::uint64_t>(done)};
    }
    int done = 0;
    const int rc = function_for(packer.by_next_tool, "MPI_Unpack", mpi::lib().Unpack)(
        source, static_cast<int>(bytes), &done, to.at(), count, to.type(), packer.comm);
    return {rc, static_cast<std::uint64_t>(done)};
}

// Where the data of elements lie that the library holds for one run. MPICH 4.0.2 copies such elements as they
// lie, but rounds the bytes down to a multiple of an element size that it has not set; so what it has left
// out is copied here. Of other types it leaves out nothing. We know most runs and pack none of those, but not
// all: not a darray.
std::byte* run_of(std::byte* at, mpi::Datatype type) {
    return base::displaced(at, facts_of(type).offset_bytes);
}

template <class Move>
void in_portions(const TypePacker::Block& block, Move move) {
    if (block.count == 0) return;  // perhaps of no type
    const TypeFacts type = facts_of(block.type);
    if (type.size_bytes > INT_MAX && !packs_large())
        stop_at("a datatype with holes and more than 2 GiB of data in one element");
    std::int64_t most = std::max<std::int64_t>(
        1, INT_MAX / std::max<std::int64_t>(1, static_cast<std::int64_t>(type.size_bytes)));
    for (std::int64_t done = 0; done < block.count; done += most) {
        int count = static_cast<int>(std::min(most, block.count - done));
        move(base::displaced(block.at, done * type.extent_bytes), count,
             static_cast<std::uint64_t>(done) * type.size_bytes,
             static_cast<std::uint64_t>(count) * type.size_bytes);
    }
}

}  // namespace

void TypePacker::pack(std::int32_t index, std::byte* target) const {
    const Block& block = blocks[index];
    in_portions(block, [&](std::byte* at, int count, std::uint64_t done, std::uint64_t bytes) {
        const Moved packed = pack_some(*this, NotNull(at, block.type), count, target + done, bytes);
        if (packed.rc != mpi::kSuccess || (packed.bytes < bytes && by_next_tool)) stop_at("packing failed");
        if (packed.bytes < bytes) std::memcpy(target + done, run_of(at, block.type), bytes);
    });
}

void TypePacker::unpack(std::int32_t index, const std::byte* source) const {
    const Block& block = blocks[index];
    in_portions(block, [&](std::byte* at, int count, std::uint64_t done, std::uint64_t bytes) {
        const Moved unpacked = unpack_some(*this, source + done, bytes, NotNull(at, block.type), count);
        if (unpacked.rc != mpi::kSuccess || (unpacked.bytes < bytes && by_next_tool))
            stop_at("unpacking failed");
        if (unpacked.bytes < bytes) std::memcpy(run_of(at, block.type), source + done, bytes);
    });
}

}  // namespace coco::dispatch
