// SPDX-License-Identifier: BSD-3-Clause
#include "comm/meeting.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/index.h"
#include "base/log.h"
#include "channel/control_pool.h"
#include "comm/arrange.h"
#include "comm/told.h"
#include "comm/world.h"
#include "heap/heap.h"
#include "heap/segment.h"
#include "mpi/library.h"
#include "mpi/progress.h"
#include "os/clock.h"
#include "os/cpu.h"

namespace coco::comm {
namespace {

void fill_state(Comm& comm, const Members& members) {
    comm.world_ranks = &members.world_ranks();
    comm.rank = members.own_rank();
    comm.ranks = members.size();
    std::vector<const RankCard*> cards;
    for (const std::int32_t world_rank : members.world_ranks())
        cards.push_back(&world()[base::index(world_rank)].card);
    arrange(comm, cards);
}

[[noreturn]] void stop_without_control(const Comm& comm) {
    base::log(base::LogLevel::error,
              base::Text() << "no shared memory is left for a communicator of " << comm.ranks
                           << " ranks, of which too many are in use at once: COCO_DISABLE=1 helps");
    usleep(100'000);  // a launcher may drop what was printed just before a job is killed
    mpi::lib().Abort(comm.handle, mpi::lib().constants.err_no_mem);
    __builtin_trap();
}

// Makes the state as if nobody had called on the communicator yet. What depends on its members alone stays.
void renew(Comm& comm) {
    COCO_CHECK(!comm.lane.channel.is_open(), "state that is made anew has left its channel");
    comm.calls = 0;
    if (comm.closed != stats::Reason::none) return;
    comm.closed = stats::Reason::not_set_up;
    comm.settled = false;
    if (comm.neighbors != nullptr) {
        std::erase_if(comm.schedules,
                      [](const Comm::Kept& kept) { return kept.key.neighborhood != nullptr; });
        comm.last_schedule = 0;
        comm.neighbors.reset();
        comm.lane.post.wire = nullptr;
    }
    comm.lane.blocks.release_rooms();
    comm.choices.forget();
    for (Comm::Kept& kept : comm.schedules) kept.fits.clear();  // the scratch is given up
}

}  // namespace

std::unique_ptr<Comm> make_state(mpi::Comm handle, Bond& bond) {
    Members& members = bond.members_of(handle);
    std::unique_ptr<Comm> comm = members.take_idle();
    COCO_CHECK(comm == nullptr || comm->ranks == members.size(), "state is used again for the same members");
    if (comm == nullptr) {
        comm = std::make_unique<Comm>();
        fill_state(*comm, members);
    }
    comm->handle = handle;
    comm->id = bond.id;
    return comm;
}

void show_control(Comm& comm) {
    COCO_CHECK(comm.id != 0 && comm.world_ranks != nullptr, "ranks meet on a communicator with an identity");
    std::byte* segment = heap::own().base;
    channel::Control* control = channel::take_control();
    if (control == nullptr) stop_without_control(comm);
    if (comm.rank == 0 && comm.nodes == 1) tell_what_is_known(comm, control->told);
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
    if (!channel::show(own_directory(), comm.id, card)) stop_without_control(comm);
}

void open_on_node(Comm& comm) {
    show_control(comm);
    choose_waiting(comm);
}

namespace {

void leave(Comm& comm) {
    const std::vector<std::int32_t> on_node = comm.map.ranks_on_node(comm.map.node[comm.rank]);
    COCO_CHECK(!on_node.empty() && comm.id != 0, "ranks leave a communicator with an identity");
    const std::int32_t first = (*comm.world_ranks)[base::index(on_node[0])];
    const channel::LeaveInfo leave{.id = comm.id,
                                   .ranks = on_node.size(),
                                   .first_directory = &directory_of(first),
                                   .first_segment = segment_of(first),
                                   .own_directory = &own_directory()};
    std::vector<void*> memory = comm.lane.post.leave();
    channel::retire_control(comm.lane.channel.close(), leave, std::move(memory));
}

}  // namespace

void part(std::unique_ptr<Comm> comm, Members& members) {
    COCO_CHECK(comm != nullptr && comm->ranks == members.size(),
               "a communicator that is left had these members");
    if (comm->lane.channel.is_open() && !comm->control_is_lone) leave(*comm);
    const bool lasts = comm->closed == stats::Reason::none || comm->closed == stats::Reason::not_set_up ||
                       comm->closed == stats::Reason::single_rank;
    if (comm->wire != nullptr || comm->control_is_lone || !lasts) return;
    renew(*comm);
    members.give_idle(std::move(comm));
}

}  // namespace coco::comm
