// SPDX-License-Identifier: BSD-3-Clause
// Large blocks: pages that a loop keeps, and room to grow. Run as a rank.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "heap/heap.h"
#include "heap/large.h"
#include "heap/private_blocks.h"
#include "heap/segment.h"

using namespace coco::heap;

namespace {

constexpr std::size_t kMiB = 1u << 20;

// Turns of a loop. Returns: whether each found zeros where it asked for them.
bool turn(int turns, std::size_t bytes, bool zeroed) {
    bool good = true;
    for (int i = 0; i < turns; ++i) {
        auto* block = static_cast<unsigned char*>(zeroed ? allocate_zeroed(bytes, 1) : allocate(bytes));
        for (std::size_t at = 0; zeroed && at < bytes; at += 4096) good = good && block[at] == 0;
        for (std::size_t at = 0; at < bytes; at += 4096) block[at] = 0xa5;
        release(block);
    }
    return good;
}

void keep(std::size_t bytes) {
    turn(5, bytes, false);
    CHECK(figures().kept_bytes >= bytes);
    CHECK(figures().kept_bytes <= 256 * kMiB);
}

}  // namespace

TEST_CASE("what is freed once or twice is given back at once", "[heap]") {
    turn(2, 40 * kMiB, false);
    CHECK(figures().kept_bytes == 0);
}

TEST_CASE("kept pages read as zeros where that is asked for", "[heap]") {
    keep(40 * kMiB);
    CHECK(turn(3, 40 * kMiB, true));
    auto* part = static_cast<char*>(allocate_zeroed(33 * kMiB, 1));  // of the kept ones, in part
    std::size_t others = 0;
    for (std::size_t at = 0; at < 33 * kMiB; ++at) others += part[at] != 0;
    CHECK(others == 0);
    release(part);
}

TEST_CASE("kept pages go back when the heap takes new address space", "[heap]") {
    keep(48 * kMiB);
    static void* small[3000];
    for (void*& block : small) block = allocate(10000);
    CHECK(figures().kept_bytes == 0);
    for (void* block : small) release(block);
}

TEST_CASE("kept pages go back at fork", "[heap]") {
    keep(56 * kMiB);
    pid_t child = fork();
    if (child == 0) _exit(turn(4, 56 * kMiB, true) && figures().kept_bytes == 0 ? 0 : 1);
    CHECK(figures().kept_bytes == 0);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

TEST_CASE("kept pages go back when the loop does not come round", "[heap]") {
    keep(32 * kMiB);
    tend();
    CHECK(figures().kept_bytes >= 32 * kMiB);
    usleep(1'200'000);
    tend();
    CHECK(figures().kept_bytes == 0);
}

TEST_CASE("no more is kept than the bound", "[heap]") {
    turn(5, 300 * kMiB, false);
    CHECK(figures().kept_bytes > 0);
    CHECK(figures().kept_bytes <= 256 * kMiB);
    CHECK(turn(2, 300 * kMiB, true));
}

TEST_CASE("a large block that grows keeps what it holds", "[heap]") {
    auto* block = static_cast<char*>(allocate(1000));
    std::memset(block, 'g', 1000);
    int moves = 0;
    for (std::size_t bytes = kMiB; bytes < 200 * kMiB; bytes += bytes / 3) {
        auto* grown = static_cast<char*>(reallocate(block, bytes));
        moves += bytes > 64 * kMiB && grown != block;
        block = grown;
        CHECK(is_shared(block, bytes) == (bytes < kLarge || !bears_private()));
        CHECK(usable_bytes(block) >= bytes);
        CHECK(block[0] == 'g');
        CHECK(block[999] == 'g');
        block[bytes - 1] = 1;
    }
    CHECK(moves == 0);
    block = static_cast<char*>(reallocate(block, 1000));
    CHECK(block[999] == 'g');
    release(block);
}
