// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/lifecycle.h"

#include <atomic>
#include <mutex>

#include "base/log.h"
#include "comm/find.h"
#include "comm/handles.h"
#include "comm/set_up.h"
#include "comm/world.h"
#include "dispatch/entry.h"
#include "dispatch/learned.h"
#include "dispatch/report.h"
#include "heap/arenas.h"
#include "heap/heap.h"
#include "heap/segment.h"
#include "mpi/progress.h"
#include "mpi/wire.h"
#include "os/process.h"
#include "stats/stats.h"

namespace coco::dispatch {
namespace {

// Whoever puts rules into the policy holds the mutex meanwhile; calls of sessions, which may be other
// threads', only read it.
std::mutex g_rules_mutex;
bool g_sessions_choose = false;  // a session begins, or has begun; guarded by g_rules_mutex

// The ranks of the world get to know one another. Those that would choose unlike, or leave us out on some
// ranks only, must not run a call of ours together.
void get_acquainted() {
    if (comm::acquaint(choice_hash(), !is_switched_off())) {
        if (learning_in_force().reads && !is_switched_off() && mpi::has_world()) {
            {
                std::scoped_lock lock(g_rules_mutex);
                fetch_learned_rules(settings_in_force(), g_sessions_choose);
            }
            comm::set_choice_hash(choice_hash());  // which other jobs compare with theirs
        }
        if (!comm::can_meet()) return;
        comm::bind_world();
        comm::Comm* opened = comm::open_world();
        if (opened != nullptr && !comm::anybody_counts()) rehearse(*opened);
        if (opened != nullptr) heap::share_large_blocks(opened->lane.channel.is_refused_reads());
        return;
    }
    switch_off();
    comm::forget_handles();  // sessions may have called before
    if (mpi::world_rank() == 0)
        COCO_LOG(warn, "ranks have unequal COCO_ settings or policies: all calls are left to MPI");
}

// Has the doors leave all calls, if nothing of ours runs and nothing is counted. (Both can change from a
// session to MPI_Init.)
void leave_calls_if_off() {
    g_all_calls_pass.store(is_switched_off() && !stats::enabled(), std::memory_order_relaxed);
}

// Switched off, no setting but COCO_STATS is looked at.
void read_what_counts() {
    if (is_switched_off())
        stats::configure();
    else
        read_settings();
}

}  // namespace

void before_init() {
    os::mark_children();
    read_what_counts();
}

void after_init() {
    let_world_report();
    if (!is_switched_off()) wake();
    get_acquainted();
    if (!is_switched_off()) mpi::own_comm();  // made where no other thread is in MPI
    leave_calls_if_off();
}

void before_session_init() {
    before_init();
    // A thread waits here while another one's MPI_Init waits for other ranks, as it waits in MPI libraries.
    std::scoped_lock lock(g_rules_mutex);
    g_sessions_choose = true;
}

void after_session_init(mpi::Session session) {
    note_session();
    if (!is_switched_off()) wake();
    if (stats::enabled()) plan_sessions_report(session);
    leave_calls_if_off();
}

int end_communicator(int (*pass_on)(void*), void* comm) {
    if (comm == nullptr || t_inside != 0) return pass_on(comm);
    comm::EndingScope dying(mpi::load<mpi::Comm>(comm));
    return pass_on(comm);
}

void before_idup() { mpi::Wire::have_no_more(); }

void before_finalize() {
    if (!mpi_runs() || !mpi::has_world()) return;
    let_world_report();
    read_what_counts();
    report_world();
    if (const settings::Learn& learn = learning_in_force();
        learn.is_on && learn.reads && mpi::world_rank() == 0)
        leave_learned_rules(settings_in_force(), the_journal());
    mpi::end_progress();
    mpi::end_wires();
    note_end();
    comm::forget_handles();
}

// A session's communicators hold pointers to other ranks' memory, and another thread may be in a call on one.
// A tool below may have put MPI's end off.
void after_finalize() {
    int finalized = 0;
    mpi::lib().Finalized(&finalized);
    if (finalized && !has_session()) heap::unmap_peers();
}

}  // namespace coco::dispatch
