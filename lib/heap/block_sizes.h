// SPDX-License-Identifier: BSD-3-Clause
//
// From which sizes on blocks lie in arenas of their own (arenas.h). Thread safety: constants.
#pragma once
#include <cstddef>

namespace coco::heap {

// Middle blocks are those that the threads' caches do not hold (tcache_max in system.cc).
constexpr std::size_t kMiddle = (256u << 10) + 1;
// Large ones are those that glibc always maps and unmaps. Peers read so long ones through the kernel
// nearly as fast as by loads.
constexpr std::size_t kLarge = (32u << 20) + 1;

}  // namespace coco::heap
