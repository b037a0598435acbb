// SPDX-License-Identifier: BSD-3-Clause
#include "comm/meeting.h"

#include <utility>

#include "base/check.h"
#include "base/index.h"
#include "channel/control_pool.h"
#include "comm/told.h"
#include "comm/world.h"
#include "heap/heap.h"
#include "heap/segment.h"
#include "mpi/library.h"

namespace coco::comm {
namespace {

[[noreturn]] void stop_without_control(const Comm& comm) {
    mpi::stop_job(comm.handle, mpi::lib().constants.err_no_mem,
                  base::Text() << "no shared memory is left for a communicator of " << comm.ranks
                               << " ranks, of which too many are in use at once: COCO_DISABLE=1 helps");
}

}  // namespace

void show_control(Comm& comm) {
    COCO_CHECK(comm.id != 0 && comm.world_ranks != nullptr, "ranks meet on a communicator with an identity");
    std::byte* segment = heap::own().base;
    channel::Control* control = channel::control_pool().take();
    if (control == nullptr) stop_without_control(comm);
    if (comm.rank == 0 && comm.map.nodes() == 1) tell_known_choices(comm, control->told);
    const channel::ControlCard card{
        .control_at = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(control) - segment),
        .epoch_base = control->flag.value.load(std::memory_order_relaxed) >> 20,
        .tape_at = control->tape_at,
        .leavers_before = control->leavers.load(std::memory_order_relaxed)};
    COCO_CHECK(card.control_at < heap::own().bytes,
               "a control block that is shown lies on the own shared heap");
    std::vector<channel::Peer> peers(base::index(comm.ranks));
    // All mates' segments are set: schedules may follow one mate to another's memory, for which this rank
    // never waits.
    for (std::int32_t mate : comm.mates) {
        const std::int32_t world_rank = (*comm.world_ranks)[base::index(mate)];
        peers[base::index(mate)] = {.segment = segment_of(world_rank),
                                    .growths = &heap::growths_of(segment_of(world_rank)),
                                    .directory = &directory_of(world_rank)};
    }
    peers[base::index(comm.rank)] = {
        .segment = segment, .control = control, .epoch_base = card.epoch_base, .tape_at = card.tape_at};
    comm.lane.channel.open(comm.id, comm.rank, std::move(peers), comm.mates);
    if (!channel::control_pool().show(own_directory(), comm.id, card)) stop_without_control(comm);
}

void leave_mates(Comm& comm) {
    const std::vector<std::int32_t> on_node = comm.map.ranks_on_node(comm.map.node[comm.rank]);
    COCO_CHECK(!on_node.empty() && comm.id != 0, "ranks leave a communicator with an identity");
    const std::int32_t first = (*comm.world_ranks)[base::index(on_node[0])];
    const channel::LeaveInfo leave{.id = comm.id,
                                   .ranks = on_node.size(),
                                   .first_directory = &directory_of(first),
                                   .first_segment = segment_of(first),
                                   .own_directory = &own_directory()};
    std::vector<void*> memory = comm.lane.post.leave();
    channel::control_pool().retire(comm.lane.channel.close(), leave, std::move(memory));
}

}  // namespace coco::comm
