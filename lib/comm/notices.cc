// SPDX-License-Identifier: BSD-3-Clause
#include "comm/notices.h"

#include <cstring>

#include "base/check.h"
#include "base/index.h"
#include "mpi/library.h"
#include "mpi/progress.h"

namespace coco::comm {
namespace {

constexpr std::uint32_t kSignature = 0x6e6f7469;  // no call of a program has this one
// The most that one rank may tell: the rest of the stage ring is for the calls behind it.
constexpr std::uint64_t kMostBytes = channel::kStageBytes / 2;

[[noreturn]] void stop_apart(const Comm& comm, std::int32_t peer) {
    mpi::stop_job(comm.handle, mpi::lib().constants.err_arg,
                  base::Text() << "ranks " << comm.rank << " and " << peer << " of a communicator of "
                               << comm.ranks << " ranks are in different collectives: the program is "
                               << "wrong (COCO_DISABLE=1 leaves the check to MPI)");
}

// Publishes the number of words, then the words; 0 words: they were too many.
void tell(Comm& comm, const Notice& mine) {
    const std::uint64_t bytes = mine.size() * sizeof mine[0];
    const auto words = base::number(bytes <= kMostBytes ? mine.size() : 0);
    channel::Slot& slot = comm.lane.channel.open_slot();
    slot.signature = kSignature;
    slot.publish = channel::Publish::staged;
    std::byte* at = comm.lane.channel.stage_bytes(sizeof words + (words != 0 ? bytes : 0));
    std::memcpy(at, &words, sizeof words);
    if (words != 0) std::memcpy(at + sizeof words, mine.data(), bytes);
    slot.scratch_at = comm.lane.channel.offset_of(at);
    comm.lane.channel.publish(slot);
}

Notice hear(Comm& comm, std::int32_t peer) {
    comm.lane.channel.wait_arrived(peer);
    const channel::Slot& slot = comm.lane.channel.slot_of(peer);
    if (slot.signature != kSignature) stop_apart(comm, peer);
    const std::byte* at = comm.lane.channel.at(peer, slot.scratch_at);
    std::int32_t words = 0;
    std::memcpy(&words, at, sizeof words);
    COCO_CHECK(words >= 0 && static_cast<std::uint64_t>(words) * sizeof words <= kMostBytes,
               "no rank tells more than fits");
    Notice notice(base::index(words));
    if (words != 0) std::memcpy(notice.data(), at + sizeof words, notice.size() * sizeof notice[0]);
    return notice;
}

}  // namespace

std::vector<Notice> exchange_notices(Comm& comm, const Notice& mine) {
    COCO_CHECK(comm.lane.channel.is_open() && comm.map.nodes() == 1,
               "notices are exchanged on an open communicator of one node");
    comm.lane.channel.begin_epoch();
    mpi::set_current(comm.handle);
    tell(comm, mine);
    std::vector<Notice> notices(base::index(comm.ranks));
    bool whole = mine.size() * sizeof mine[0] <= kMostBytes;
    notices[base::index(comm.rank)] = mine;
    for (std::int32_t mate : comm.mates) {
        notices[base::index(mate)] = hear(comm, mate);
        whole = whole && !notices[base::index(mate)].empty();
    }
    comm.lane.channel.raise(schedule::kDone);
    return whole ? notices : std::vector<Notice>();
}

}  // namespace coco::comm
