// SPDX-License-Identifier: BSD-3-Clause
// Layouts against lists of all their bytes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "blocks/layout.h"

using namespace coco::blocks;

namespace {

// A layout and where each byte of its data lies.
struct Pair {
    Layout layout;
    std::vector<std::int64_t> bytes;

    void repeat(std::int64_t count, std::int64_t stride) {
        layout.repeat(count, stride);
        std::vector<std::int64_t> all;
        for (std::int64_t i = 0; i < count; ++i)
            for (std::int64_t at : bytes) all.push_back(at + i * stride);
        bytes = all;
    }
    void shift(std::int64_t by) {
        layout.shift(by);
        for (std::int64_t& at : bytes) at += by;
    }
    void append(const Pair& other) {
        layout.append(other.layout);
        bytes.insert(bytes.end(), other.bytes.begin(), other.bytes.end());
    }
};

Pair run(std::int64_t offset, std::uint64_t bytes) {
    Pair made{Layout::run(offset, bytes), {}};
    for (std::uint64_t i = 0; i < bytes; ++i) made.bytes.push_back(offset + static_cast<std::int64_t>(i));
    return made;
}

std::int64_t extent_of(const Pair& pair) {
    if (pair.bytes.empty()) return 1;
    const auto [low, high] = std::ranges::minmax(pair.bytes);
    return high + 1 - low;
}

using Random = std::mt19937;
std::int64_t pick(Random& random, std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

// Of all kinds: runs of common and of odd lengths, loops forward and backward, pieces in a row and anywhere.
Pair random_pair(Random& random, int depth) {
    static constexpr std::uint64_t kRuns[] = {1, 3, 4, 8, 16, 24, 32, 64, 100};
    Pair made = run(pick(random, -8, 8), kRuns[pick(random, 0, 8)]);
    for (int i = 0; i < depth; ++i) {
        const std::int64_t extent = extent_of(made);
        switch (pick(random, 0, 3)) {
            case 0:
                made.repeat(pick(random, 1, 4), extent + pick(random, 0, 1) * pick(random, 0, 40));
                break;
            case 1:
                made.repeat(pick(random, 2, 3), -extent - pick(random, 0, 9));
                break;
            case 2: {
                Pair other = random_pair(random, depth - 1);
                other.shift(made.bytes.back() + 1 + pick(random, 0, 1) * pick(random, 0, 30) + 200);
                made.append(other);
                break;
            }
            default: {
                Pair other = made;
                const std::int64_t stride = extent + pick(random, 0, 5);
                for (int k = 0; k < 3; ++k) other.shift(stride), made.append(other);
            }
        }
        if (made.bytes.size() > 5000) break;
    }
    return made;
}

// Memory that a layout lies in, with its origin.
struct Memory {
    explicit Memory(const std::vector<std::int64_t>& bytes) {
        const auto [low, high] = std::ranges::minmax(bytes);
        all.resize(static_cast<std::size_t>(high - low + 1));
        origin = all.data() - low;
    }
    std::vector<std::byte> all;
    std::byte* origin;
};

BlockLayout layout_of_block(const std::vector<std::int64_t>& words, std::int64_t count, std::int64_t extent) {
    return {words.data(), count, extent};
}

}  // namespace

TEST_CASE("layouts of all kinds have the bytes, the bounds and the order of what they are made of",
          "[layout]") {
    Random random(7);
    for (int i = 0; i < 3000; ++i) {
        const Pair pair = random_pair(random, static_cast<int>(pick(random, 0, 4)));
        REQUIRE(pair.layout.is_valid());
        REQUIRE(pair.layout.bytes() == pair.bytes.size());
        const auto [low, high] = std::ranges::minmax(pair.bytes);
        REQUIRE(pair.layout.bounds().low == low);
        REQUIRE(pair.layout.bounds().high == high + 1);
        const std::vector<std::int64_t> words = pair.layout.words();
        std::byte zero{};
        std::vector<std::int64_t> seen;
        for_each_run(&zero, layout_of_block(words, 1, 0), 0, pair.bytes.size(),
                     [&](std::byte* at, std::uint64_t bytes) {
                         for (std::uint64_t k = 0; k < bytes; ++k)
                             seen.push_back(at - &zero + static_cast<std::int64_t>(k));
                         return true;
                     });
        REQUIRE(seen == pair.bytes);
    }
}

TEST_CASE("data are copied between any two layouts, whole and in part", "[layout]") {
    Random random(11);
    int copied = 0;
    for (int i = 0; i < 4000; ++i) {
        Pair from = random_pair(random, static_cast<int>(pick(random, 0, 4))), to = from;
        if (pick(random, 0, 3) != 0) to = random_pair(random, static_cast<int>(pick(random, 0, 4)));
        if (!from.layout.is_valid() || !to.layout.is_valid()) continue;
        const std::vector<std::int64_t> from_words = from.layout.words(), to_words = to.layout.words();
        const std::int64_t from_count = pick(random, 1, 3), to_count = pick(random, 1, 3);
        const std::int64_t from_extent = extent_of(from) + pick(random, 0, 9),
                           to_extent = extent_of(to) + pick(random, 0, 9);
        from.repeat(from_count, from_extent);
        to.repeat(to_count, to_extent);
        Memory source(from.bytes), target(to.bytes);
        // What overlaps itself can be sent, not received.
        std::vector<std::int64_t> places = to.bytes;
        std::ranges::sort(places);
        if (std::ranges::adjacent_find(places) != places.end()) continue;
        for (std::byte& byte : source.all) byte = static_cast<std::byte>(pick(random, 0, 255));
        const std::vector<std::byte> before(target.all.size(), std::byte{7});
        for (int k = 0; k < 5; ++k) {
            target.all = before;
            target.origin = target.all.data() - *std::ranges::min_element(to.bytes);
            const auto from_at =
                static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(from.bytes.size()) - 1));
            const auto to_at =
                static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(to.bytes.size()) - 1));
            const std::size_t most = std::min(from.bytes.size() - from_at, to.bytes.size() - to_at);
            const std::size_t bytes =
                k == 0 ? most : static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(most)));
            const bool dense = k == 4;  // the target is contiguous
            std::vector<std::byte> packed(bytes);
            if (dense)
                copy_data({packed.data()},
                          {source.origin, layout_of_block(from_words, from_count, from_extent), from_at},
                          bytes);
            else
                copy_data({target.origin, layout_of_block(to_words, to_count, to_extent), to_at},
                          {source.origin, layout_of_block(from_words, from_count, from_extent), from_at},
                          bytes);
            std::vector<std::byte> wanted = before;
            bool right = true;
            for (std::size_t b = 0; b < bytes; ++b) {
                const std::byte value = source.origin[from.bytes[from_at + b]];
                if (dense)
                    right = right && packed[b] == value;
                else
                    wanted[static_cast<std::size_t>(target.origin - target.all.data() +
                                                    to.bytes[to_at + b])] = value;
            }
            REQUIRE(right);
            if (!dense) REQUIRE(target.all == wanted);
            ++copied;
        }
    }
    CHECK(copied > 10'000);
}

TEST_CASE("a layout that is regular is short", "[layout]") {
    // A subarray of three dimensions, and an indexed type whose displacements are even.
    Layout cube = Layout::run(0, 16);
    cube.repeat(8, 16);
    cube.repeat(8, 16 * 32);
    cube.repeat(8, 16 * 32 * 32);
    CHECK(cube.words().size() == 2 + 3 + 2 * 2);
    Layout even;
    for (int i = 0; i < 1000; ++i) even.append(Layout::run(i * 48, 8));
    CHECK(even.words().size() == 2 + 3 + 2);
    Layout row;
    for (int i = 0; i < 1000; ++i) row.append(Layout::run(i * 8, 8));
    CHECK(row.words().size() == 2 + 3);
    row.repeat(0, 5);
    CHECK(row.bytes() == 0);
}

TEST_CASE("what is too irregular has no layout", "[layout]") {
    Layout many;
    for (std::size_t i = 0; i < 3 * Layout::kPiecesMax; ++i)
        many.append(Layout::run(static_cast<std::int64_t>(i * i * 16), 8 + i % 3));
    CHECK_FALSE(many.is_valid());
    many.append(Layout::run(0, 8));
    CHECK_FALSE(many.is_valid());
    Layout deep = Layout::run(0, 1);
    std::int64_t stride = 3;
    for (std::size_t i = 0; i <= Layout::kLoopsMax; ++i, stride *= 3) deep.repeat(2, stride);
    CHECK_FALSE(deep.is_valid());
}

TEST_CASE("a bounded layout says as soon as it has too many pieces that it is none", "[layout]") {
    auto element = [] { return Layout::run(0, 4).bounded(1); };
    Layout run = element();
    run.append([&] {
        Layout next = element();
        next.shift(4);
        return next;
    }());
    CHECK(run.is_run());
    Layout holes = element();
    for (int i = 1; i < 4; ++i) {
        Layout next = element();
        next.shift(8 * i * i);
        holes.append(std::move(next));
    }
    CHECK_FALSE(holes.is_valid());
    CHECK_FALSE(holes.is_run());
    Layout vector = element();
    vector.repeat(100, 12);
    CHECK(vector.is_valid());
    holes.repeat(0, 8);
    CHECK(holes.is_valid());
    CHECK(holes.bytes() == 0);
}
