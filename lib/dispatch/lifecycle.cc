// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/lifecycle.h"

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "base/log.h"
#include "comm/comm.h"
#include "comm/mpi_table.h"
#include "comm/progress.h"
#include "dispatch/entry.h"
#include "exec/delay.h"
#include "heap/heap.h"
#include "settings/settings.h"
#include "stats/stats.h"

namespace coco::dispatch {
namespace {

using comm::mpi;

settings::Settings& settings_in_force() {
    static settings::Settings* settings = new settings::Settings;  // used until the process ends
    return *settings;
}

// One rank tells, all stop: a job with a wrong setting never starts to compute.
[[noreturn]] void stop_job(const std::string& line) {
    int initialized = 0, rank = 0;
    mpi().Initialized(&initialized);
    if (initialized) mpi().Comm_rank(mpi().comm_world, &rank);
    if (!initialized || rank == 0) base::write_line(base::Text() << "coco: error: " << line);
    if (initialized) mpi().Abort(mpi().comm_world, 2);
    _exit(2);
}

std::once_flag g_reading;
std::optional<std::string>& settings_error() {
    static auto* error = new std::optional<std::string>;
    return *error;
}

void read_once() {
    std::call_once(g_reading, [] {
        heap::wake();
        settings_error() = settings::read(settings_in_force());
        exec::g_delay_us = settings_in_force().test_delay_us;
        comm::set_choice_hash(settings::choice_hash(settings_in_force().policy));
    });
}

bool mpi_runs() {
    int initialized = 0, finalized = 0;
    mpi().Initialized(&initialized);
    mpi().Finalized(&finalized);
    return initialized && !finalized;
}

std::atomic<bool> g_awake{false};

void report_statistics() {
    std::uint64_t mine = stats::enabled(), all = 0;
    mpi().Allreduce(&mine, &all, 1, mpi().uint64, mpi().min, mpi().comm_world);
    if (!all) return;
    int rank = 0, ranks = 0;
    mpi().Comm_rank(mpi().comm_world, &rank);
    mpi().Comm_size(mpi().comm_world, &ranks);
    std::vector<stats::Row> rows = stats::rows(rank);
    int bytes = static_cast<int>(rows.size() * sizeof(stats::Row));
    std::vector<int> sizes(static_cast<std::size_t>(ranks)), starts(sizes.size());
    mpi().Gather(&bytes, sizeof bytes, mpi().byte, sizes.data(), sizeof bytes, mpi().byte, 0, mpi().comm_world);
    int total = 0;
    for (std::size_t r = 0; rank == 0 && r < sizes.size(); ++r) {
        starts[r] = total;
        total += sizes[r];
    }
    std::vector<stats::Row> everything(static_cast<std::size_t>(total) / sizeof(stats::Row));
    mpi().Gatherv(rows.data(), bytes, mpi().byte, everything.data(), sizes.data(), starts.data(), mpi().byte, 0,
                  mpi().comm_world);
    if (rank == 0) stats::report(everything, ranks);
}

}  // namespace

bool is_switched_off() {
    static const bool off = settings::is_switched_off();
    return off;
}

const policy::Policy& the_policy() { return settings_in_force().policy; }

bool wake() {
    if (g_awake.load(std::memory_order_acquire)) return true;  // pairs with the release below
    read_once();
    if (!mpi_runs()) return false;
    if (settings_error()) stop_job(*settings_error());
    int rank = 0;
    mpi().Comm_rank(mpi().comm_world, &rank);
    base::set_log_rank(rank);
    g_awake.store(true, std::memory_order_release);
    return true;
}

void before_init() {
    if (!is_switched_off()) read_once();
}

void after_init() {
    if (!is_switched_off()) wake();
}

void before_finalize() {
    if (is_switched_off() || !wake()) return;
    report_statistics();
    comm::end_progress();
    g_awake.store(false, std::memory_order_release);
}

}  // namespace coco::dispatch
