// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of every size and alignment that their cases tell apart. No call of the other tests is so large that
// it would stream on a machine of large caches.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "blocks/copy_block.h"

using namespace coco::blocks;

namespace {

constexpr std::size_t kGuard = 128;

// Whether `copy` moves the bytes, all of them and no others.
template <class Copy>
bool moves(Copy copy, std::size_t target_shift, std::size_t source_shift, std::size_t bytes) {
    std::vector<std::byte> source(bytes + 2 * kGuard), target(source.size() + kGuard, std::byte{0xEE});
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 31 + i / 251);
    std::vector<std::byte> wanted = target;
    std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(source_shift), bytes,
                wanted.begin() + static_cast<std::ptrdiff_t>(kGuard + target_shift));
    copy(target.data() + kGuard + target_shift, source.data() + source_shift, bytes);
    return target == wanted;
}

}  // namespace

TEST_CASE("copies move all bytes and no others", "[copy]") {
    constexpr std::size_t kSizes[] = {0,    1,    2,    3,    4,    5,    7,    8,    9,   15,
                                      16,   17,   31,   32,   33,   63,   64,   65,   127, 128,
                                      1000, 1023, 1024, 1025, 1087, 4096, 5000, 70001};
    for (std::size_t bytes : kSizes)
        for (std::size_t target : {0, 1, 8, 31, 63})
            for (std::size_t source : {0, 1, 8, 33}) {
                CAPTURE(bytes, target, source);
                CHECK(moves(copy_block, target, source, bytes));
                CHECK(moves(copy_streaming, target, source, bytes));
            }
}

TEST_CASE("a block that lies where it belongs stays", "[copy]") {
    std::vector<std::byte> block(5000, std::byte{7});
    copy_streaming(block.data(), block.data(), block.size());
    CHECK(std::ranges::count(block, std::byte{7}) == 5000);
}
