// SPDX-License-Identifier: BSD-3-Clause
#include "comm/complain.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/log.h"
#include "heap/process_facts.h"
#include "heap/segment.h"

namespace coco::comm {
namespace {

std::atomic<bool> g_said{false};

const char* cure_of(int error) {
    switch (error) {
        case EACCES:
        case EPERM:
            return "the ranks of a node must be one user's, and may look into each other's processes "
                   "(ptrace)";
        case ENOENT:
            return "the ranks of a node must see each other in /proc: one container, or one pid namespace "
                   "for all";
        case EMFILE:
        case ENFILE:
            return "allow more open files (ulimit -n)";
        case ENOMEM:
            return "allow more address space (ulimit -v), or less heap for each rank (COCO_HEAP_LIMIT)";
        default:
            return "COCO_LOG=info says more on each rank";
    }
}

void append_error(base::Text& line, int error) {
    if (error != 0) line << ": " << std::strerror(error);
    line << "; " << cure_of(error);
}

// Why this rank could not map all of its mates.
base::Text reason_of(bool has_control) {
    base::Text line;
    heap::Refusal refusal = heap::last_refusal();
    if (refusal.what != nullptr && refusal.peer_pid != 0) {
        line << "cannot map the heap of process " << refusal.peer_pid << ": " << refusal.what;
        append_error(line, refusal.error);
    } else if (refusal.what != nullptr) {
        line << refusal.what;
        append_error(line, refusal.error);
    } else if (!has_control) {
        line << "the shared heap is full; COCO_HEAP_LIMIT allows more";
    } else {
        line << "a rank of the node has no room on a shared heap, or the node has too many ranks; "
             << cure_of(0);
    }
    return line;
}

}  // namespace

void complain_unmapped(const Comm& comm, std::int32_t speaker, bool has_control) noexcept {
    COCO_CHECK(speaker >= 0 && speaker < comm.ranks, "a rank of the communicator speaks");
    if (g_said.exchange(true) || comm.rank != speaker || heap::heap_limit() == 0u) return;
    COCO_LOG(warn, "calls are left to MPI: " << reason_of(has_control).view());
}

}  // namespace coco::comm
