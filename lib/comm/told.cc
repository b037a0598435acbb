// SPDX-License-Identifier: BSD-3-Clause
#include "comm/told.h"

#include <atomic>

#include "base/check.h"
#include "mpi/library.h"

namespace coco::comm {
namespace {

std::atomic<choose::Journal*> g_journal{nullptr};

}  // namespace

void set_journal(choose::Journal& journal) { g_journal.store(&journal, std::memory_order_release); }

void tell_known_choices(const Comm& comm, std::span<std::int64_t> room) {
    COCO_CHECK(!room.empty(), "what is told has room");
    COCO_CHECK(comm.map.nodes() >= 1, "what is known is that of communicators with so many nodes");
    room[0] = 0;
    choose::Journal* journal = g_journal.load(std::memory_order_acquire);  // pairs with set_journal()
    if (journal == nullptr) return;
    journal->tell(comm.facts(), room);
}

void hear_known_choices(Comm& comm) {
    if (g_journal.load(std::memory_order_acquire) == nullptr) return;  // pairs with set_journal()
    comm.told.assign(channel::kToldNumbers, 0);
    if (comm.rank == 0) tell_known_choices(comm, comm.told);
    const int bytes = static_cast<int>(comm.told.size() * sizeof comm.told[0]);
    if (mpi::lib().Bcast(comm.told.data(), bytes, mpi::lib().byte, 0, comm.handle) != mpi::kSuccess)
        comm.told.clear();
}

std::span<const std::int64_t> told_by_first_rank(Comm& comm) {
    COCO_CHECK(comm.lane.channel.is_open(), "a communicator that is set up was told what is known");
    if (comm.map.nodes() > 1 || comm.id == 0) return comm.told;
    return comm.lane.channel.told();
}

}  // namespace coco::comm
