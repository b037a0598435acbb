// SPDX-License-Identifier: BSD-3-Clause
// MPI libraries that remember registered memory hear, by munmap(), of all memory of the heap whose pages have
// gone, before anybody may have it again.
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "expect.h"

namespace {

struct Range {
    std::uintptr_t begin, end;
};
Range g_heard[4096];
std::size_t g_count = 0;

bool is_heard(const void* block, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    return std::any_of(g_heard, g_heard + g_count, [&](const Range& range) {
        return range.begin <= begin + 4096 && begin + bytes - 4096 <= range.end;
    });
}

}  // namespace

// As a library has it that watches memory: who maps is first in the program.
extern "C" int munmap(void* address, std::size_t bytes) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    if (g_count < std::size(g_heard)) g_heard[g_count++] = {begin, begin + bytes};
    std::free(std::malloc(1000));  // a watcher may allocate
    return static_cast<int>(syscall(SYS_munmap, address, bytes));
}

int main() {
    constexpr std::size_t kLarge = 64u << 20, kSmall = 100'000;
    void* large = std::malloc(kLarge);
    std::memset(large, 1, kLarge);
    std::free(large);
    std::free(std::malloc(1));
    EXPECT(is_heard(large, kLarge));

    std::vector<void*> small(200);
    for (void*& block : small) block = std::memset(std::malloc(kSmall), 1, kSmall);
    g_count = 0;
    for (void* block : small) std::free(block);
    EXPECT(malloc_trim(0) == 1);
    std::size_t heard = 0;
    for (void* block : small) heard += is_heard(block, kSmall) ? 1 : 0;
    EXPECT(heard > small.size() / 2);  // a thread keeps some for itself
    return failures();
}
