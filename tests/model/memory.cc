// SPDX-License-Identifier: BSD-3-Clause
#include "memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace coco::model {
namespace {

alignas(4096) std::byte g_shared[kRanksMost][kRankBytes];
std::size_t g_taken[kRanksMost];

constexpr std::size_t kArenaBytes = 4 * 1024 * 1024;
alignas(64) std::byte g_arena[kArenaBytes];
std::size_t g_arena_taken = 0;
bool g_inside_run = false;

[[noreturn]] void stop(const char* why) {
    std::fprintf(stderr, "model: %s\n", why);
    std::abort();
}

void* take_from_arena(std::size_t bytes) {
    void* memory = g_arena + g_arena_taken;
    g_arena_taken += (bytes + 63) / 64 * 64;
    if (g_arena_taken > kArenaBytes) stop("the arena of a run is full");
    return memory;
}

void* allocate(std::size_t bytes) {
    if (g_inside_run) return take_from_arena(bytes);
    void* memory = std::malloc(std::max<std::size_t>(bytes, 1));
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

void release(void* memory) {
    if (memory < g_arena || memory >= g_arena + kArenaBytes) std::free(memory);
}

}  // namespace

void renew_memory() {
    for (std::size_t r = 0; r < kRanksMost; ++r) {
        std::memset(g_shared[r], 0, g_taken[r]);
        g_taken[r] = 0;
    }
    g_arena_taken = 0;
}

std::byte* shared_memory_of(int rank) { return g_shared[rank]; }

void* take_shared(int rank, std::size_t bytes, std::size_t alignment) {
    std::size_t& taken = g_taken[rank];
    const std::size_t at = (taken + alignment - 1) / alignment * alignment;
    taken = at + bytes;
    if (taken > kRankBytes) stop("the shared memory of a rank is full");
    return g_shared[rank] + at;
}

int cell_of(const volatile void* address) {
    const auto offset =
        reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(g_shared);
    return offset < sizeof g_shared ? static_cast<int>(offset / kCellBytes) : -1;
}

OutsideRun::OutsideRun() : was_inside_(std::exchange(g_inside_run, false)) {}
OutsideRun::~OutsideRun() { g_inside_run = was_inside_; }
void enter_run() { g_inside_run = true; }
void leave_run() { g_inside_run = false; }

}  // namespace coco::model

void* operator new(std::size_t bytes) { return coco::model::allocate(bytes); }
void* operator new[](std::size_t bytes) { return coco::model::allocate(bytes); }
void operator delete(void* memory) noexcept { coco::model::release(memory); }
void operator delete[](void* memory) noexcept { coco::model::release(memory); }
void operator delete(void* memory, std::size_t) noexcept { coco::model::release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { coco::model::release(memory); }
