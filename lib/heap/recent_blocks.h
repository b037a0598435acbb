// SPDX-License-Identifier: BSD-3-Clause
//
// The last few blocks of a middling size that a thread freed. The thread gets them back when it asks for such
// a size again: a function with a temporary buffer then costs what it costs with glibc, where jemalloc takes
// 10 ns more for a pair of malloc and free, and 150 ns from 256 KiB on. Called by allocator.cc. Thread
// safety: each thread has its own. Invariant: no thread holds more than kRecentBytes; a thread that ends
// holds none. Never fails.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coco::heap {

constexpr std::size_t kRecentFrom = 32u << 10;
constexpr std::size_t kRecentBytes = 8u << 20;

// By which a free knows with one comparison that its block is none of these, which most are not.
struct RecentMarks {
    static constexpr std::size_t kMarks = 8;
    const void* blocks[kMarks];

    static std::size_t place(const void* block) {
        constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;
        return (reinterpret_cast<std::uint64_t>(block) >> 12) * kOdd >> 61;
    }
};
extern constinit thread_local RecentMarks t_recent_marks;

// A block for so many bytes, with any contents; null: there is none.
void* take_recent(std::size_t bytes);
// Marks a block that this thread has allocated: its free will look closer. Requires: bytes >= kRecentFrom.
void mark_recent(const void* block, std::size_t bytes);
// Whether the block may be marked. False: it is not.
inline bool may_be_marked(const void* block) {
    return t_recent_marks.blocks[RecentMarks::place(block)] == block;
}
// Takes a block that the program frees; false: the caller frees it. block: any that is not free, or null.
bool keep_recent(void* block);
// Frees this thread's.
void drop_recent();

}  // namespace coco::heap
