// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/lifecycle.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>

#include "base/log.h"
#include "comm/bond.h"
#include "comm/comm.h"
#include "comm/world.h"
#include "dispatch/entry.h"
#include "dispatch/learned.h"
#include "exec/delay.h"
#include "heap/arenas.h"
#include "heap/heap.h"
#include "heap/segment.h"
#include "mpi/library.h"
#include "mpi/progress.h"
#include "mpi/wire.h"
#include "os/probe.h"
#include "os/process.h"
#include "os/process_memory.h"
#include "settings/settings.h"
#include "stats/stats.h"

namespace coco::dispatch {
namespace {

settings::Settings& settings_in_force() {
    static settings::Settings* settings = new settings::Settings;  // used until the process ends
    return *settings;
}

// A session was opened: MPI runs, whatever MPI_Initialized says of the world.
std::atomic<bool> g_session{false};
// MPI_Finalize was called: what we own of MPI is gone, though a tool below may go on for a while.
std::atomic<bool> g_ended{false};

// Whoever puts rules into the policy holds the mutex meanwhile; calls of sessions, which may be other threads', only read it.
std::mutex g_rules_mutex;
bool g_sessions_choose = false;  // a session begins, or has begun; guarded by g_rules_mutex

bool has_world() {
    int initialized = 0;
    mpi::lib().Initialized(&initialized);
    return initialized;
}

// One rank tells, all stop: a job with a wrong setting never starts to compute. Rank 0 is given the time to
// tell and to end the job; another rank speaks only if rank 0 has nothing to complain of.
[[noreturn]] void stop_job(const std::string& line) {
    constexpr useconds_t kPrecedence_us = 3'000'000;  // Open MPI may take 2 s to end a job
    constexpr useconds_t kForwarding_us =
        200'000;  // launchers drop what they have not read when a job is aborted
    int rank = 0;
    bool world = has_world();
    if (world) mpi::lib().Comm_rank(mpi::lib().comm_world, &rank);
    if (rank != 0) usleep(kPrecedence_us);
    base::write_line(base::Text() << "coco: error: " << line);
    usleep(kForwarding_us);
    if (world) mpi::lib().Abort(mpi::lib().comm_world, 2);
    _exit(2);
}

std::once_flag g_reading;
std::optional<std::string>& settings_error() {
    static auto* error = new std::optional<std::string>;
    return *error;
}

// Two builds of libcoco in one job do not understand each other's memory either.
std::uint64_t choice_hash() {
    return settings::choice_hash(settings_in_force().policy) + sizeof(channel::Control);
}

void read_once() {
    std::call_once(g_reading, [] {
        heap::wake();
        if (heap::own().bytes != 0) {
            os::let_others_read();
            heap::bound_memory(os::granted_memory_bytes());
        }
        settings_error() = settings::read(settings_in_force());
        exec::g_delay_us = settings_in_force().test_delay_us;
        channel::g_never_reads = settings_in_force().test_pieces;
        comm::set_choice_hash(choice_hash());
        if (learning_in_force().is_on) comm::set_journal(the_journal());
    });
}

std::atomic<bool> g_awake{false};
std::atomic<bool> g_disagreed{false};

// The ranks of the world get to know one another. Those that would choose unlike, or leave us out on some
// ranks only, must not run a call of ours together.
void get_acquainted() {
    if (comm::acquaint(choice_hash(), !is_switched_off())) {
        if (learning_in_force().reads && !is_switched_off() && has_world()) {
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
    g_disagreed.store(true, std::memory_order_relaxed);
    comm::forget_handles();  // sessions may have called before
    int rank = 0;
    mpi::lib().Comm_rank(mpi::lib().comm_world, &rank);
    if (rank == 0) COCO_LOG(warn, "ranks have unequal COCO_ settings or policies: all calls are left to MPI");
}

std::vector<stats::Learned> what_was_learned() {
    std::vector<stats::Learned> all;
    for (const choose::Lesson& lesson : the_journal().lessons()) {
        stats::Learned learned{.collective = static_cast<std::uint8_t>(lesson.facts.collective),
                               .nodes = lesson.facts.nodes,
                               .ranks_per_node = lesson.facts.ranks_per_node,
                               .size_class = lesson.size_class,
                               .candidates = {},
                               .incumbent = static_cast<std::size_t>(lesson.incumbent),
                               .calls = lesson.calls,
                               .looks = lesson.looks,
                               .changes = lesson.changes,
                               .spent_ns = lesson.spent_ns};
        for (std::size_t c = 0; c < lesson.candidates.size(); ++c)
            learned.candidates.push_back({policy::text_of(lesson.candidates[c]), lesson.times_ns[c],
                                          lesson.spreads[c].low_ns, lesson.spreads[c].high_ns});
        all.push_back(std::move(learned));
    }
    return all;
}

void report_statistics() {
    std::uint64_t mine = stats::enabled(), all = 0;
    mpi::lib().Allreduce(&mine, &all, 1, mpi::lib().int64, mpi::lib().min, mpi::lib().comm_world);
    if (!all) return;
    int rank = 0, ranks = 0;
    mpi::lib().Comm_rank(mpi::lib().comm_world, &rank);
    mpi::lib().Comm_size(mpi::lib().comm_world, &ranks);
    std::vector<stats::Row> rows = stats::rows(rank);
    int bytes = static_cast<int>(rows.size() * sizeof(stats::Row));
    std::vector<int> sizes(static_cast<std::size_t>(ranks)), starts(sizes.size());
    mpi::lib().Gather(&bytes, sizeof bytes, mpi::lib().byte, sizes.data(), sizeof bytes, mpi::lib().byte, 0,
                      mpi::lib().comm_world);
    int total = 0;
    for (std::size_t r = 0; rank == 0 && r < sizes.size(); ++r) {
        starts[r] = total;
        total += sizes[r];
    }
    std::vector<stats::Row> everything(static_cast<std::size_t>(total) / sizeof(stats::Row));
    mpi::lib().Gatherv(rows.data(), bytes, mpi::lib().byte, everything.data(), sizes.data(), starts.data(),
                       mpi::lib().byte, 0, mpi::lib().comm_world);
    if (rank == 0) stats::report(everything, ranks, stats::Counted::all_ranks, what_was_learned());
}

// At exit: MPI may not be called any more, and not all ranks may have had a session at once, so that nothing
// is gathered: rank 0 of the processes that were started together reports its own calls.
struct SessionsReport {
    std::once_flag planned;
    pid_t process = 0;  // not the children that it forks
    int ranks = 0;
    std::atomic<bool> superseded{false};  // the world reports
};
SessionsReport g_sessions_report;

void report_sessions() {
    if (g_sessions_report.superseded.load(std::memory_order_relaxed) || getpid() != g_sessions_report.process)
        return;
    stats::report(stats::rows(0), g_sessions_report.ranks, stats::Counted::rank_0, what_was_learned());
}

void plan_report(mpi::Session session) {
    int rank = -1;
    mpi::Group started;
    if (mpi::lib().Group_from_session_pset(session, "mpi://WORLD", &started) != mpi::kSuccess) return;
    mpi::lib().Group_rank(started, &rank);
    mpi::lib().Group_size(started, &g_sessions_report.ranks);
    mpi::lib().Group_free(&started);
    g_sessions_report.process = getpid();
    if (rank == 0) std::atexit(report_sessions);
}

// Has the doors leave all calls, if nothing of ours runs and nothing is counted. (Both can change from a session to MPI_Init.)
void leave_calls_if_off() {
    g_all_calls_pass.store(is_switched_off() && !stats::enabled(), std::memory_order_relaxed);
}

// Switched off, no setting but COCO_STATS is looked at.
void read_what_counts() {
    if (is_switched_off())
        stats::configure();
    else
        read_once();
}

}  // namespace

bool mpi_runs() {
    int finalized = 0;
    mpi::lib().Finalized(&finalized);
    const bool has_ended = finalized || g_ended.load(std::memory_order_relaxed);
    return (has_world() || g_session.load(std::memory_order_relaxed)) && !has_ended;
}

bool is_switched_off() {
    static const bool off = settings::is_switched_off();
    return off || g_disagreed.load(std::memory_order_relaxed);
}

const policy::Policy& the_policy() { return settings_in_force().policy; }
choose::Journal& the_journal() {
    static auto* journal = new choose::Journal;  // used until the process ends
    return *journal;
}
const settings::Learn& learning_in_force() { return settings_in_force().learn; }

bool wake() {
    if (g_awake.load(std::memory_order_acquire)) return true;  // pairs with the release below
    read_once();
    if (!mpi_runs()) return false;
    if (settings_error()) stop_job(*settings_error());
    if (has_world()) {
        int rank = 0;
        mpi::lib().Comm_rank(mpi::lib().comm_world, &rank);
        base::set_log_rank(rank);
    }
    g_awake.store(true, std::memory_order_release);
    return true;
}

void before_init() {
    os::mark_children();
    read_what_counts();
}

void after_init() {
    g_sessions_report.superseded.store(true, std::memory_order_relaxed);
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

void note_session() { g_session.store(true, std::memory_order_relaxed); }

void after_session_init(mpi::Session session) {
    note_session();
    if (!is_switched_off()) wake();
    if (stats::enabled()) std::call_once(g_sessions_report.planned, plan_report, session);
    leave_calls_if_off();
}

int end_communicator(int (*pass_on)(void*), void* comm) {
    if (comm == nullptr || t_inside != 0) return pass_on(comm);
    comm::EndingScope dying(mpi::load<mpi::Comm>(comm));
    return pass_on(comm);
}

void before_idup() { mpi::Wire::have_no_more(); }

void before_finalize() {
    if (!mpi_runs() || !has_world()) return;
    g_sessions_report.superseded.store(true, std::memory_order_relaxed);
    read_what_counts();
    report_statistics();
    if (const settings::Learn& learn = learning_in_force(); learn.is_on && learn.reads) {
        int rank = 0;
        mpi::lib().Comm_rank(mpi::lib().comm_world, &rank);
        if (rank == 0) leave_learned_rules(settings_in_force(), the_journal());
    }
    mpi::end_progress();
    mpi::end_wires();
    g_ended.store(true, std::memory_order_relaxed);
    g_awake.store(false, std::memory_order_release);
    comm::forget_handles();
}

// A session's communicators hold pointers to other ranks' memory, and another thread may be in a call on one. A tool below may have
// put MPI's end off.
void after_finalize() {
    int finalized = 0;
    mpi::lib().Finalized(&finalized);
    if (finalized && !g_session.load(std::memory_order_relaxed)) heap::unmap_peers();
}

}  // namespace coco::dispatch
