// SPDX-License-Identifier: BSD-3-Clause
#include "exec/exchange.h"

#include <unistd.h>

#include "base/log.h"
#include "exec/copy_block.h"
#include "mpi/library.h"

namespace coco::exec {

using channel::Publish;
using channel::Slot;

std::uint32_t signature_of(const CommonFacts& common) {
    std::uint64_t mixed = common.block_bytes * 0x9E3779B97F4A7C15u;
    return static_cast<std::uint32_t>(mixed >> 32 << 8) ^ (static_cast<std::uint32_t>(common.root) << 4) ^
           static_cast<std::uint32_t>(common.collective);
}

void check_signature(const comm::Comm& comm, std::int32_t peer, std::uint32_t signature) {
    if (comm.channel.slot_of(peer).signature != signature) [[unlikely]]
        stop_unequal(comm, peer);
}

namespace {

[[noreturn]] void stop_wrong(const comm::Comm& comm, base::Text& what) {
    what << ": the program is wrong (COCO_DISABLE=1 leaves the check to MPI)";
    base::log(base::LogLevel::error, what);
    // A launcher may drop what was printed just before a job is killed: once in some fifty runs of MPICH's.
    usleep(100'000);
    mpi::lib().Abort(comm.handle, mpi::lib().constants.err_arg);
    __builtin_trap();
}

}  // namespace

void stop_unequal(const comm::Comm& comm, std::int32_t peer) {
    stop_wrong(comm,
               base::Text() << "ranks " << comm.rank << " and " << peer << " of a communicator of "
                            << comm.ranks
                            << " ranks are in different collectives, or call one with different block sizes");
}

void stop_lopsided(const comm::Comm& comm, algorithms::Collective collective) {
    stop_wrong(comm, base::Text() << "rank " << comm.rank << " of a communicator of " << comm.ranks
                                  << " ranks receives blocks of another size than it sends in "
                                  << base::name_of(collective).data()
                                  << ", where its neighbours have to name one size");
}

stats::Reason agree(comm::Comm& comm, std::uint32_t signature, stats::Reason own) {
    stats::Reason reason = own;
    for (std::int32_t r : comm.mates) {
        comm.channel.wait_arrived(r);
        check_signature(comm, r, signature);
        if (comm.channel.slot_of(r).publish == Publish::refuse && reason == stats::Reason::none)
            reason = stats::Reason::peer;
    }
    return reason;
}

void copy_out(std::byte* scratch, const std::byte* from, std::span<const channel::BlockAt> blocks,
              std::span<const std::int32_t> left_out) {
    auto* table = reinterpret_cast<channel::StagedBlock*>(scratch);
    auto next_out = blocks.size() == 1 ? left_out.end() : left_out.begin();
    std::uint64_t at = blocks.size() * sizeof(channel::StagedBlock);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const bool out = next_out != left_out.end() && static_cast<std::size_t>(*next_out) == i;
        if (out) ++next_out;
        std::uint64_t bytes = out ? 0 : blocks[i].bytes;
        table[i] = {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(bytes)};
        copy_block(scratch + at, base::displaced(from, blocks[i].displacement_bytes), bytes);
        at += bytes;
    }
}

Slot& ExchangeView::open_slot() {
    Slot& slot = *channel_.open_slot();
    slot.signature = signature_;
    return slot;
}

void ExchangeView::publish(Slot& slot) {
    if (published_) return;
    published_ = true;
    channel_.publish(slot);
}

}  // namespace coco::exec
