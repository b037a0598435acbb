// SPDX-License-Identifier: BSD-3-Clause
#include "comm/progress.h"

#include <atomic>
#include <mutex>

#include "comm/mpi_table.h"

namespace coco::comm {
namespace {

std::mutex g_making;
std::atomic<bool> g_ready{false};
MPI_Comm g_own;

// Without the world model (sessions only) there is no MPI_COMM_SELF to copy.
bool make_own() {
    std::lock_guard lock(g_making);
    if (g_ready.load(std::memory_order_relaxed)) return true;
    int initialized = 0, finalized = 0;
    mpi().Initialized(&initialized);
    mpi().Finalized(&finalized);
    if (!initialized || finalized) return false;
    if (mpi().Comm_dup(mpi().comm_self, &g_own) != MPI_SUCCESS) return false;
    g_ready.store(true, std::memory_order_release);  // pairs with the acquire in drive_progress()
    return true;
}

}  // namespace

void drive_progress() {
    if (!g_ready.load(std::memory_order_acquire) && !make_own()) return;
    int flag = 0;
    mpi().Iprobe(0, 0, g_own, &flag, MPI_STATUS_IGNORE);
}

void end_progress() {
    std::lock_guard lock(g_making);
    if (g_ready.exchange(false, std::memory_order_acq_rel)) mpi().Comm_free(&g_own);
}

}  // namespace coco::comm
