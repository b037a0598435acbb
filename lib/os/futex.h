// SPDX-License-Identifier: BSD-3-Clause
//
// Sleeping on a word in shared memory. Process safety: works between processes that map the word at any address.
#pragma once
#include <atomic>
#include <cstdint>

namespace coco::os {

// Sleeps while `word` is `expected`, at most timeout_ns. May return early for no reason.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns);
void futex_wake_all(std::atomic<std::uint32_t>& word);

}  // namespace coco::os
