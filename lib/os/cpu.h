// SPDX-License-Identifier: BSD-3-Clause
//
// What differs between processors: the only file, with cpu.cc, that knows their instructions. Called by all
// that waits or copies much. Works below malloc. Thread safety: any thread.
#pragma once
#include <cstddef>

namespace coco::os {

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

}  // namespace coco::os
