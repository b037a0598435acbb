// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/lifecycle.h"

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>

#include "base/env.h"
#include "base/log.h"
#include "comm/comm.h"
#include "comm/mpi_table.h"
#include "comm/progress.h"
#include "dispatch/entry.h"
#include "exec/delay.h"
#include "heap/heap.h"
#include "os/probe.h"
#include "stats/stats.h"

namespace coco::dispatch {
namespace {

using comm::mpi;

policy::Policy& policy_in_force() {
    static policy::Policy* policy = new policy::Policy;  // used until the process ends
    return *policy;
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

std::string wrong(const char* name) {
    const base::Setting& s = base::setting(name);
    return std::string(name) + "=" + std::string(base::env(name)) + ": must be " + s.choices;
}

// Returns: the line for the user about the first wrong setting; empty if all are right.
std::string read_settings() {
    std::string_view log = base::env("COCO_LOG");
    if (!log.empty() && log != "error" && log != "warn" && log != "info" && log != "debug") return wrong("COCO_LOG");
    std::uint64_t number = 0;
    if (auto limit = base::env("COCO_HEAP_LIMIT"); !limit.empty() && !base::parse_bytes(limit, number))
        return wrong("COCO_HEAP_LIMIT");
    if (auto delay = base::env("COCO_TEST_DELAY"); !delay.empty() && !base::parse_number(delay, exec::g_delay_us))
        return wrong("COCO_TEST_DELAY");
    std::string why;
    if (auto machine = base::env("COCO_TOPOLOGY"); !machine.empty() && !os::invented_machine(machine, why))
        return wrong("COCO_TOPOLOGY") + " (" + why + ")";
    if (!stats::configure()) return wrong("COCO_STATS");
    if (auto error = policy::from_environment(policy_in_force())) return error->line;
    return {};
}

std::uint64_t hash_text(std::uint64_t hash, std::string_view text) {
    for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;  // FNV-1a
    return hash * 31 + text.size();
}

// All that decides which path a call takes.
std::uint64_t choice_hash(const policy::Policy& policy) {
    std::uint64_t hash = 0xCBF29CE484222325u + sizeof(comm::Control);
    hash = hash_text(hash, COCO_VERSION);
    for (const policy::Rule& rule : policy.rules) hash = hash_text(hash, rule.text);
    for (const base::Setting& s : base::settings()) {
        std::string_view name(s.name);
        if (name != "COCO_LOG" && name != "COCO_STATS" && name != "COCO_HEAP_LIMIT" && name != "COCO_TEST_DELAY" &&
            name != "COCO_POLICY")
            hash = hash_text(hash, base::env(s.name));
    }
    return hash;
}

std::once_flag g_reading;
std::string& settings_error() {
    static std::string* error = new std::string;
    return *error;
}

void read_once() {
    std::call_once(g_reading, [] {
        heap::wake();
        settings_error() = read_settings();
        comm::set_choice_hash(choice_hash(policy_in_force()));
    });
}

bool mpi_runs() {
    int initialized = 0, finalized = 0;
    mpi().Initialized(&initialized);
    mpi().Finalized(&finalized);
    return initialized && !finalized;
}

std::atomic<bool> g_awake{false};
std::atomic<bool> g_disagreed{false};

// Ranks that would choose unlike, or leave us out on some ranks only, must not run a call of ours together.
void agree_on_settings() {
    std::uint64_t hash = choice_hash(policy_in_force());
    std::uint64_t mine[2] = {hash, ~hash}, least[2] = {};
    mpi().Allreduce(mine, least, 2, mpi().uint64, mpi().min, mpi().comm_world);
    if (least[0] == ~least[1]) return;
    g_disagreed.store(true, std::memory_order_relaxed);
    int rank = 0;
    mpi().Comm_rank(mpi().comm_world, &rank);
    if (rank == 0) COCO_LOG(warn, "ranks have unequal COCO_ settings or policies: all calls are left to MPI");
}

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
    static const bool off = base::env("COCO_DISABLE") == "1";
    return off || g_disagreed.load(std::memory_order_relaxed);
}

const policy::Policy& the_policy() { return policy_in_force(); }

bool wake() {
    if (g_awake.load(std::memory_order_acquire)) return true;  // pairs with the release below
    read_once();
    if (!mpi_runs()) return false;
    if (!settings_error().empty()) stop_job(settings_error());
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
    agree_on_settings();
    if (!is_switched_off()) comm::own_comm();  // made where no other thread is in MPI
}

void after_session_init() {
    if (!is_switched_off()) wake();
}

void before_finalize() {
    if (is_switched_off() || !wake()) return;
    report_statistics();
    comm::end_progress();
    g_awake.store(false, std::memory_order_release);
}

}  // namespace coco::dispatch
