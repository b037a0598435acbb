// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/in_force.h"

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "base/log.h"
#include "comm/set_up.h"
#include "comm/told.h"
#include "comm/world.h"
#include "exec/delay.h"
#include "heap/process_facts.h"
#include "heap/segment.h"
#include "mpi/library.h"
#include "os/probe.h"
#include "os/process_memory.h"

namespace coco::dispatch {
namespace {

std::atomic<bool> g_session{false}, g_ended{false}, g_awake{false}, g_disagreed{false};

// One rank tells, all stop: a job with a wrong setting never starts to compute. Rank 0 is given the time to
// tell and to end the job; another rank speaks only if rank 0 has nothing to complain of.
[[noreturn]] void stop_job(const std::string& line) {
    constexpr useconds_t kPrecedence_us = 3'000'000;  // Open MPI may take 2 s to end a job
    constexpr useconds_t kForwarding_us =
        200'000;  // launchers drop what they have not read when a job is aborted
    const bool world = mpi::has_world();
    if (world && mpi::world_rank() != 0) usleep(kPrecedence_us);
    base::write_line(base::Text() << "coco: error: " << line);
    usleep(kForwarding_us);
    if (world) mpi::lib().Abort(mpi::lib().comm_world, 2);
    _exit(2);
}

std::optional<std::string>& settings_error() {
    static auto* error = new std::optional<std::string>;
    return *error;
}

}  // namespace

settings::Settings& settings_in_force() {
    static settings::Settings* settings = new settings::Settings;  // used until the process ends
    return *settings;
}

choose::Journal& the_journal() {
    static auto* journal = new choose::Journal;  // used until the process ends
    return *journal;
}

std::uint64_t choice_hash() {
    return settings::choice_hash(settings_in_force().policy) + sizeof(channel::Control);
}

void read_settings() {
    static std::once_flag reading;
    std::call_once(reading, [] {
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

bool is_switched_off() {
    static const bool off = settings::is_switched_off();
    return off || g_disagreed.load(std::memory_order_relaxed);
}
void switch_off() { g_disagreed.store(true, std::memory_order_relaxed); }

bool mpi_runs() {
    int finalized = 0;
    mpi::lib().Finalized(&finalized);
    const bool has_ended = finalized || g_ended.load(std::memory_order_relaxed);
    return (mpi::has_world() || has_session()) && !has_ended;
}

void note_session() { g_session.store(true, std::memory_order_relaxed); }
bool has_session() { return g_session.load(std::memory_order_relaxed); }

void note_end() {
    g_ended.store(true, std::memory_order_relaxed);
    g_awake.store(false, std::memory_order_release);
}

bool wake() {
    if (g_awake.load(std::memory_order_acquire)) return true;  // pairs with the release below
    read_settings();
    if (!mpi_runs()) return false;
    if (settings_error()) stop_job(*settings_error());
    if (mpi::has_world()) base::set_log_rank(mpi::world_rank());
    g_awake.store(true, std::memory_order_release);
    return true;
}

}  // namespace coco::dispatch
