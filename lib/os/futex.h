// SPDX-License-Identifier: BSD-3-Clause
//
// Sleeping on a 32-bit word in shared memory, across processes. The word may be mapped at different
// addresses. Thread and process safety: any. Fails: never; a wait may end early, so callers check their word
// in a loop.
#pragma once
#include <atomic>
#include <cstdint>

namespace coco::os {

// Sleeps while *word == expected, at most timeout_ns. Keeps errno.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns);
// Wakes every sleeper on the word. Keeps errno.
void futex_wake_all(const std::atomic<std::uint32_t>& word);

}  // namespace coco::os
