// SPDX-License-Identifier: BSD-3-Clause
#include "heap/restore.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

#include "base/kernel.h"
#include "heap/overlays.h"
#include "heap/own_segment.h"

namespace coco::heap {
namespace {

bool restore_run(const PageRun& run) {
    auto bytes = static_cast<std::size_t>(run.end - run.begin);
    // A mapping in a hole may be somebody else's; an overlay is of the block's own user.
    int fixed = (run.changes & kHole) != 0 ? MAP_FIXED_NOREPLACE : MAP_FIXED;
    bool done = (run.changes & kGone) != 0 ? map_again(run.begin, bytes, fixed)
                                           : kernel::mprotect(run.begin, bytes, PROT_READ | PROT_WRITE) == 0;
    if (done) forget_changes(run.begin, bytes, kAnyChange);
    return done;
}

bool restore_all(std::byte* block, std::byte* end) {
    for (PageRun run = run_at(block, end); run.begin != run.end; run = run_at(run.end, end)) {
        if ((run.changes & kAnyChange) == 0) continue;
        // A page that the block shares with another one is not the program's to replace; one that it has shut
        // is opened, as the program does where it watches writes.
        const bool reaches_out = run.begin < block || run.end > end;
        if ((reaches_out && (run.changes & kGone) != 0) || !restore_run(run)) return false;
    }
    return true;
}

}  // namespace

bool restore_block(void* block, std::size_t bytes) {
    int saved = errno;
    bool done = restore_all(static_cast<std::byte*>(block), static_cast<std::byte*>(block) + bytes);
    errno = saved;
    return done;
}

}  // namespace coco::heap
