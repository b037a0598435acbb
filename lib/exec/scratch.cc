// SPDX-License-Identifier: BSD-3-Clause
#include "exec/scratch.h"

#include <bit>

#include "heap/heap.h"
#include "heap/segment.h"
#include "mpi/library.h"

namespace coco::exec {
namespace {

constexpr std::uint64_t kHalves = 2;

// Makes room for `bytes` in each half. What there was stays if there is none.
bool grow(comm::Comm& comm, std::uint64_t bytes) {
    comm::Comm::Room& room = comm.scratch;
    if (kHalves * bytes <= room.bytes) return true;
    auto* memory = static_cast<std::byte*>(heap::allocate_aligned(64, kHalves * bytes));
    if (memory == nullptr) return false;
    if (!comm.mates.empty() && !heap::is_shared(memory, kHalves * bytes)) {
        heap::release(memory);
        return false;
    }
    comm.channel.wait_all_done(comm.channel.epoch() - 1);  // mates may still read the old one
    heap::release(room.memory);
    room = {memory, kHalves * bytes};
    return true;
}

}  // namespace

bool has_scratch(comm::Comm& comm, comm::Comm::Kept::Fit& fit, std::int32_t blocks,
                 std::uint64_t block_bytes) {
    if (block_bytes <= fit.fitting_block_bytes) return true;
    if (block_bytes >= fit.failing_block_bytes) return false;
    std::uint64_t most = std::bit_ceil(block_bytes);
    std::uint64_t bytes = base::round_up(static_cast<std::uint64_t>(blocks) * most, heap::kSurelyShared);
    std::uint64_t mine = grow(comm, bytes), all = 0;
    mpi::lib().Allreduce(&mine, &all, 1, mpi::lib().uint64, mpi::lib().min, comm.handle);
    (all ? fit.fitting_block_bytes : fit.failing_block_bytes) = all ? most : block_bytes;
    return all;
}

std::byte* take_scratch(comm::Comm& comm) {
    if (comm.channel.epoch() > kHalves) comm.channel.wait_all_done(comm.channel.epoch() - kHalves);
    return comm.scratch.memory + comm.channel.epoch() % kHalves * (comm.scratch.bytes / kHalves);
}

}  // namespace coco::exec
