// SPDX-License-Identifier: BSD-3-Clause
// The heap below a program of its own malloc: run as a rank with COCO_HEAP_LIMIT=64M.
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "heap/heap.h"
#include "heap/segment.h"
#include "heap/spans.h"

using namespace coco::heap;

TEST_CASE("blocks are shared up to the limit and private beyond", "[heap]") {
    wake();
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
    CHECK(carved_bytes() <= 64u << 20);
    for (void* block : blocks) release(block);
    release(small);
}

TEST_CASE("spans that are given back are joined and taken again", "[heap]") {
    std::uint64_t before = carved_bytes();
    const std::uint64_t page = span_unit();
    std::uint64_t all = take_span(9 * page);
    REQUIRE(all != 0);
    CHECK(carved_bytes() == before + 9 * page);
    give_span(all, 3 * page);
    give_span(all + 6 * page, 3 * page);
    give_span(all + 3 * page, 3 * page);  // joins both neighbours
    CHECK(carved_bytes() == before);
    CHECK(take_span(9 * page) == all);
    give_span(all, 9 * page);
    CHECK(take_span(own().bytes) == 0);
}
