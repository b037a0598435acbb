// SPDX-License-Identifier: BSD-3-Clause
//
// The differences between processors: the only file, with cpu.cc, that knows their instructions, but for
// those of system calls (next_calls.cc, interpose/syscall.S) and for bits that the curves of
// schedule/order.cc take apart. Called by all that waits, copies much or lays out shared memory. Works below
// malloc. Thread safety: any thread.
#pragma once
#include <sys/auxv.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bits.h"

namespace coco::os {

// Words that two ranks write lie so far apart that neither takes the other's line away. A line has 64 bytes
// on x86 and on most ARM servers, 128 on Apple's processors and POWER, 256 on A64FX and IBM Z. It is a
// constant, as it shapes what processes share: all of a node run the same file, but not all of its CPUs need
// have the same lines. To be too large costs a little memory, to be too small costs speed, and neither costs
// anything else.
#if defined(__x86_64__)
inline constexpr std::uint64_t kLineBytes = 64;
#else
inline constexpr std::uint64_t kLineBytes = 256;
#endif
// No processor has shorter lines: the stride at which every line of a range is met.
inline constexpr std::uint64_t kLeastLineBytes = 64;

// The next multiple of a line.
constexpr std::uint64_t line_up(std::uint64_t bytes) { return base::round_up(bytes, kLineBytes); }

// The smallest piece that the kernel maps: 4 KiB, on ARM also 16 or 64 KiB, as the kernel was built.
inline std::uint64_t page_bytes() {
    static constinit std::atomic<std::uint64_t> found{0};  // relaxed: nothing else goes with it
    std::uint64_t bytes = found.load(std::memory_order_relaxed);
    if (bytes == 0) [[unlikely]]
        found.store(bytes = getauxval(AT_PAGESZ), std::memory_order_relaxed);
    return bytes;
}

// Tells the processor that this thread spins, so that it saves power and leaves room to its sibling. On ARM
// `yield` does nothing on most cores, where `isb` waits about as long as x86's pause.
inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}

// Copies lines of 64 bytes past the caches, where the processor can: the target is not read first, and what
// the caches hold stays there. The stores are ordered before whatever this thread stores after
// end_streaming(), and not before. Requires: target is aligned to 64 bytes; the ranges do not overlap.
inline constexpr std::size_t kStreamedBytes = 64;
void stream_lines(std::byte* target, const std::byte* source, std::size_t lines);
void end_streaming();

// Takes a line out of all caches, where the processor can: for measurements that start with cold ones. An
// address on the line will do.
#if defined(__x86_64__) || defined(__aarch64__)
inline constexpr bool kFlushesLines = true;
#else
inline constexpr bool kFlushesLines = false;
#endif
inline void flush_line(const void* address) {
#if defined(__x86_64__)
    __builtin_ia32_clflush(address);
#elif defined(__aarch64__)
    __asm__ volatile("dc civac, %0" ::"r"(address) : "memory");
#else
    (void)address;
#endif
}
// Waits until all lines that were flushed before have left the caches.
inline void end_flushing() {
#if defined(__x86_64__)
    __builtin_ia32_mfence();
#elif defined(__aarch64__)
    __asm__ volatile("dsb ish" ::: "memory");
#endif
}

}  // namespace coco::os
