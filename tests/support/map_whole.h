// SPDX-License-Identifier: BSD-3-Clause
//
// A whole object of shared memory mapped once more, as another process might. Called by tests; never unmapped
// but by them.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace test {

// Returns: null if it cannot be mapped.
inline std::byte* map_whole(int fd, std::uint64_t bytes) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    return mapped != MAP_FAILED ? static_cast<std::byte*>(mapped) : nullptr;
}

}  // namespace test
