// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/report.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "base/index.h"
#include "dispatch/in_force.h"
#include "mpi/library.h"
#include "stats/stats.h"

namespace coco::dispatch {
namespace {

std::vector<stats::Learned> what_was_learned() {
    std::vector<stats::Learned> all;
    for (const choose::Lesson& lesson : the_journal().lessons()) {
        const choose::Knowledge& known = lesson.knowledge;
        const policy::Range blocks = choose::blocks_of(lesson.size_class);
        stats::Learned learned{.collective = static_cast<std::uint8_t>(lesson.facts.collective),
                               .nodes = lesson.facts.nodes,
                               .ranks_per_node = lesson.facts.ranks_per_node,
                               .block_first = blocks.first,
                               .block_last = blocks.last,
                               .candidates = {},
                               .incumbent = base::index(known.incumbent),
                               .calls = known.calls,
                               .looks = known.looks,
                               .changes = known.changes,
                               .spent_ns = static_cast<std::int64_t>(known.spent_ns)};
        for (std::size_t c = 0; c < lesson.candidates.size(); ++c)
            learned.candidates.push_back({policy::text_of(lesson.candidates[c]), known.of[c].time_ns,
                                          known.of[c].low_ns, known.of[c].high_ns});
        all.push_back(std::move(learned));
    }
    return all;
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

}  // namespace

void report_world() {
    if (!mpi::on_all_ranks(mpi::lib().comm_world, stats::enabled())) return;
    const int rank = mpi::world_rank(), ranks = mpi::world_ranks();
    std::vector<stats::Row> rows = stats::rows(rank);
    int bytes = static_cast<int>(rows.size() * sizeof(stats::Row));
    std::vector<int> sizes(base::index(ranks)), starts(sizes.size());
    mpi::lib().Gather(&bytes, sizeof bytes, mpi::lib().byte, sizes.data(), sizeof bytes, mpi::lib().byte, 0,
                      mpi::lib().comm_world);
    int total = 0;
    for (std::size_t r = 0; rank == 0 && r < sizes.size(); ++r) {
        starts[r] = total;
        total += sizes[r];
    }
    std::vector<stats::Row> everything(base::index(total) / sizeof(stats::Row));
    mpi::lib().Gatherv(rows.data(), bytes, mpi::lib().byte, everything.data(), sizes.data(), starts.data(),
                       mpi::lib().byte, 0, mpi::lib().comm_world);
    if (rank == 0) stats::report(everything, ranks, stats::Counted::all_ranks, what_was_learned());
}

void plan_sessions_report(mpi::Session session) {
    std::call_once(g_sessions_report.planned, plan_report, session);
}

void let_world_report() { g_sessions_report.superseded.store(true, std::memory_order_relaxed); }

}  // namespace coco::dispatch
