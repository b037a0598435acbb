// SPDX-License-Identifier: BSD-3-Clause
#include "heap/recent_blocks.h"

#include <pthread.h>

#include "base/check.h"
#include "base/kept_errno.h"
#include "heap/private_jemalloc.h"

namespace coco::heap {

constinit thread_local RecentMarks t_recent_marks{};

namespace {

struct Freed {
    void* block;
    std::size_t bytes;
};

constexpr std::size_t kFreed = 4;

struct Thread {
    Freed freed[kFreed];  // in the order in which they were freed; the first `count` are there
    std::size_t count, bytes;
    enum : unsigned char { kNew, kWatched, kEnding } state;
};
constinit thread_local Thread t_thread{};

// Takes number i out of the list.
Freed take_out(std::size_t i) {
    Thread& thread = t_thread;
    COCO_CHECK_DEAR(i < thread.count, "a block that is taken is on the list");
    const Freed taken = thread.freed[i];
    COCO_CHECK_DEAR(taken.bytes <= thread.bytes, "the bytes of a list are those of its blocks");
    thread.bytes -= taken.bytes;
    --thread.count;
    for (; i < thread.count; ++i) thread.freed[i] = thread.freed[i + 1];
    return taken;
}

// The end of a thread that has such blocks. What it frees from now on, in the ends of other libraries, is
// freed.
void end_thread(void*) {
    t_thread.state = Thread::kEnding;
    drop_recent();
}

constinit pthread_key_t g_key = 0;
constinit bool g_key_made = false;  // before there are threads

__attribute__((constructor)) void make_key() { g_key_made = pthread_key_create(&g_key, end_thread) == 0; }

// Whether the end of this thread will be seen.
bool is_watched() {
    Thread& thread = t_thread;
    if (thread.state != Thread::kNew) [[likely]]
        return thread.state == Thread::kWatched;
    if (!g_key_made) return false;
    thread.state = Thread::kEnding;  // pthread_setspecific may allocate and free
    const base::KeptErrno kept;
    if (pthread_setspecific(g_key, &thread) == 0) thread.state = Thread::kWatched;
    return thread.state == Thread::kWatched;
}

}  // namespace

void* take_recent(std::size_t bytes) {
    const Thread& thread = t_thread;
    for (std::size_t i = thread.count; i-- > 0;)
        // jemalloc's own sizes waste a quarter at most.
        if (const std::size_t has = thread.freed[i].bytes; has >= bytes && has - bytes <= has / 4)
            return take_out(i).block;
    return nullptr;
}

void mark_recent(const void* block, std::size_t bytes) {
    COCO_CHECK_DEAR(block != nullptr && bytes >= kRecentFrom, "small blocks are not marked");
    if (bytes <= kRecentBytes) t_recent_marks.blocks[RecentMarks::place(block)] = block;
}

bool keep_recent(void* block) {
    if (block == nullptr) return false;
    t_recent_marks.blocks[RecentMarks::place(block)] = nullptr;
    // Another thread may have freed it, and got it anew for another size.
    const std::size_t bytes = coco_je_malloc_usable_size(block);
    if (bytes < kRecentFrom || bytes > kRecentBytes || !is_watched()) return false;
    Thread& thread = t_thread;
    while (thread.count == kFreed || thread.bytes + bytes > kRecentBytes) coco_je_free(take_out(0).block);
    thread.freed[thread.count++] = {block, bytes};
    thread.bytes += bytes;
    COCO_CHECK_DEAR(thread.count <= kFreed && thread.bytes <= kRecentBytes,
                    "a thread holds a bounded number of bytes");
    return true;
}

void drop_recent() {
    while (t_thread.count != 0) coco_je_free(take_out(0).block);
    COCO_CHECK_DEAR(t_thread.bytes == 0, "a thread without blocks holds no bytes");
}

}  // namespace coco::heap
