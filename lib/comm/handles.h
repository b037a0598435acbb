// SPDX-License-Identifier: BSD-3-Clause
//
// How long what is remembered of communicators' handles holds: an MPI library may give the handle of a freed
// communicator to a new one. Thread safety: any thread. Never fails.
#pragma once
#include <atomic>
#include <cstdint>

namespace coco::comm {

inline std::atomic<std::uint64_t> g_generation{1};
// A counter that goes up when a communicator is freed or MPI ends: what was remembered of handles before is
// stale then.
inline std::uint64_t generation() {
    return g_generation.load(std::memory_order_acquire);  // pairs with forget_handles()
}
// Makes the generation go up.
inline void forget_handles() { g_generation.fetch_add(1, std::memory_order_release); }

}  // namespace coco::comm
