// SPDX-License-Identifier: BSD-3-Clause
// The heap below a program of its own malloc: run as a rank with COCO_HEAP_LIMIT=64M.
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "heap/heap.h"
#include "heap/own_segment.h"
#include "heap/segment.h"
#include "os/cpu.h"

using namespace coco::heap;

TEST_CASE("what is taken of the heap is aligned, and comes again if it was the last", "[heap]") {
    const std::uint64_t page = coco::os::page_bytes();
    const std::uint64_t first = take_own(kHeap, 9 * page, page);
    REQUIRE(first != 0);
    give_own(first, 9 * page);
    CHECK(take_own(kHeap, 9 * page, page) == first);
    const std::uint64_t aligned = take_own(kHeap, page, 64 * page);
    CHECK(reinterpret_cast<std::uintptr_t>(own().base + aligned) % (64 * page) == 0);
    CHECK(aligned >= first + 9 * page);
    give_own(first, 9 * page);
    CHECK(take_own(kHeap, page, page) == aligned + page);
    CHECK(take_own(kHeap, own().bytes, page) == 0);
}

TEST_CASE("blocks are shared up to the limit and private beyond", "[heap]") {
    REQUIRE(own().bytes != 0);
    void* small = allocate(100);
    CHECK(is_shared(small, 100));
    CHECK(offset_of(small) < own().bytes);
    CHECK_FALSE(is_shared(&small));
    CHECK_FALSE(is_shared(own().base + own().bytes));
    CHECK_FALSE(is_shared(own().base + own().bytes - 1, 2));
    CHECK_FALSE(is_shared(own().base - 1));
    CHECK_FALSE(is_shared(small, SIZE_MAX));

    constexpr std::size_t kBytes = 1u << 18;
    std::vector<void*> blocks;
    for (int i = 0; i < 400; ++i) blocks.push_back(allocate(kBytes));
    std::size_t shared = 0;
    for (void* block : blocks) {
        std::memset(block, 1, kBytes);
        shared += is_shared(block, kBytes);
    }
    CHECK(shared >= 128);
    CHECK(shared < 256);
    for (void* block : blocks) release(block);
    release(small);
}
