// SPDX-License-Identifier: BSD-3-Clause
//
// The few blocks that glibc itself writes to in a forked child before it runs any handler: locks of open
// files, other threads' values of keys beyond the first 32, its state of name services. On the shared heap
// these writes would reach the parent, which may hold the lock; so these blocks are private memory, that the
// kernel copies on write (Arena::libc). Called by allocator.cc. Thread safety: any thread.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coco::heap {

// The sizes of such blocks (glibc 2.36: 176 to 552 bytes); libc's other blocks of these sizes become private,
// too.
constexpr std::size_t kLeastOfLibc = 128, kMostOfLibc = 700;
inline bool may_be_libcs(std::size_t bytes) { return bytes - kLeastOfLibc <= kMostOfLibc - kLeastOfLibc; }
// Whether `caller` is code of libc.
bool is_in_libc(const void* caller);

}  // namespace coco::heap
