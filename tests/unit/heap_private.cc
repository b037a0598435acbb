// SPDX-License-Identifier: BSD-3-Clause
// Large blocks that are born private, and ranges of them that are adopted. Run as a rank.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "heap/heap.h"
#include "heap/held.h"
#include "heap/private_blocks.h"
#include "heap/segment.h"
#include "os/cpu.h"
#include "os/pinned.h"
#include "os/shared_memory.h"
#include "support/counting_neighbor.h"
#include "tests/support/map_whole.h"

using namespace coco;
using namespace coco::heap;

namespace {

constexpr std::size_t kMiB = 1u << 20;

char* new_block(std::size_t bytes, char fill) {
    auto* block = static_cast<char*>(allocate(bytes));
    std::memset(block, fill, bytes);
    return block;
}

// The segment as a peer maps it.
const char* peers_view() {
    static std::byte* view = test::map_whole(own().fd, own().bytes);
    return reinterpret_cast<const char*>(view);
}

// Whether a peer reads what this process has there.
bool agrees(const char* at, std::size_t bytes) {
    return std::memcmp(at, peers_view() + offset_of(at), bytes) == 0;
}

bool is_readable(const char* at, std::size_t bytes) { return readable_at(at, bytes) != nullptr; }

void scramble(char* at, std::size_t bytes, unsigned seed) {
    for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<char>((i * 31 + seed) >> 3);
}

}  // namespace

TEST_CASE("large blocks are born private, small ones shared", "[heap]") {
    char* large = new_block(8 * kMiB, 'l');
    char* small = new_block(kMiB / 4, 's');
    CHECK_FALSE(is_shared(large));
    CHECK_FALSE(is_readable(large, 8 * kMiB));
    CHECK(is_shared(small, kMiB / 4));
    auto* shared = static_cast<char*>(allocate_shared(64, 8 * kMiB));
    CHECK(is_shared(shared, 8 * kMiB));
    release(shared);
    release(small);
    release(large);
}

TEST_CASE("peers read an adopted range, with the partial pages at its ends", "[heap]") {
    char* block = new_block(16 * kMiB, 'a');
    for (std::size_t skip : {0u, 1u, 4095u, 5000u, 100'000u}) {
        char* begin = block + skip;
        const std::size_t bytes = 6 * kMiB + 3 * skip + 77;
        scramble(begin, bytes, static_cast<unsigned>(skip));
        REQUIRE(adopt(begin, bytes));
        refresh_shadows(begin, bytes);
        CHECK(is_readable(begin, bytes));
        CHECK(agrees(begin, bytes));
        scramble(begin, bytes, 99);
        refresh_shadows(begin, bytes);
        CHECK(agrees(begin, bytes));
    }
    CHECK(block[16 * kMiB - 1] == 'a');
    release(block);
}

TEST_CASE("what lies beside an adopted range stays private, and may be written meanwhile", "[heap]") {
    char* block = new_block(12 * kMiB, 0);
    const std::size_t page = os::page_bytes();
    char *begin = block + 4 * kMiB + 123, *end = begin + 2 * kMiB;
    test::CountingNeighbor neighbor(begin, end);
    for (int i = 0; i < 20; ++i) {
        char* from = begin + static_cast<std::size_t>(i) * page;
        CHECK(adopt(from, static_cast<std::size_t>(end - from)));
    }
    CHECK(neighbor.done());
    release(block);
}

TEST_CASE("threads that read a range while it is adopted see its bytes", "[heap]") {
    char* block = new_block(64 * kMiB, 'r');
    std::atomic<int> wrong{0};
    std::atomic<bool> stop{false};
    std::thread reader([&] {
        while (!stop.load())
            for (std::size_t at = 0; at < 64 * kMiB; at += 4096) wrong += block[at] != 'r';
    });
    CHECK(adopt(block, 64 * kMiB));
    stop.store(true);
    reader.join();
    CHECK(wrong == 0);
    release(block);
}

TEST_CASE("adopted blocks are freed, taken again and grown", "[heap]") {
    for (int turn = 0; turn < 6; ++turn) {
        char* block = new_block(20 * kMiB, 'x');
        CHECK(adopt(block + 10, 15 * kMiB));
        refresh_shadows(block + 10, 15 * kMiB);
        auto* grown = static_cast<char*>(reallocate(block, 50 * kMiB));
        for (std::size_t at = 0; at < 20 * kMiB; at += 1000) REQUIRE(grown[at] == 'x');
        release(grown);
        auto* zeroed = static_cast<char*>(allocate_zeroed(40 * kMiB, 1));
        for (std::size_t at = 0; at < 40 * kMiB; at += 64) REQUIRE(zeroed[at] == 0);
        std::memset(zeroed, 1, 40 * kMiB);
        release(zeroed);
        trim();
    }
    CHECK(figures().kept_bytes == 0);
}

TEST_CASE("a process may adopt any number of ranges in its life", "[heap]") {
    const std::size_t page = os::page_bytes(), step = 4 * page, bytes = 8 * kMiB;
    // More than may be adopted at once.
    for (std::size_t adopted = 0; adopted < 17'000;) {
        char* block = new_block(bytes, 'l');
        for (std::size_t at = 0; at + step <= bytes; at += step)
            adopted += adopt(block + at + 1, 2 * page) ? 1 : 0;
        // Where there is no room, there is again after some more calls.
        for (int i = 0; i < 2000 && !adopt(block + 1, 2 * page); ++i) {
        }
        REQUIRE(adopt(block + 1, 2 * page));
        release(block);
        trim();
    }
}

TEST_CASE("a block that grows keeps its bytes, with others in its way", "[heap]") {
    char* block = new_block(5 * kMiB, 'g');
    std::size_t bytes = 5 * kMiB;
    char* others[12] = {};
    for (char*& other : others) {
        const std::size_t more = bytes + bytes / 3 + 777;
        block = static_cast<char*>(reallocate(block, more));
        for (std::size_t at = 0; at < bytes; at += 511) REQUIRE(block[at] == 'g');
        std::memset(block + bytes, 'g', more - bytes);
        bytes = more;
        other = new_block(4 * kMiB, 'o');
    }
    block = static_cast<char*>(reallocate(block, 6 * kMiB));
    for (std::size_t at = 0; at < 6 * kMiB; at += 511) REQUIRE(block[at] == 'g');
    for (char* other : others) {
        REQUIRE(other[4 * kMiB - 1] == 'o');
        release(other);
    }
    release(block);
}

TEST_CASE("a forked child has copies of private and adopted pages", "[heap]") {
    char* block = new_block(24 * kMiB, 'p');
    CHECK(adopt(block + 4 * kMiB, 8 * kMiB));
    const pid_t child = fork();
    if (child == 0) {
        bool good = true;
        for (std::size_t at = 0; at < 24 * kMiB; at += 512) good = good && block[at] == 'p';
        std::memset(block, 'c', 24 * kMiB);
        release(block);
        char* other = new_block(30 * kMiB, 'o');
        good = good && other[29 * kMiB] == 'o' && !adopt(other, 30 * kMiB);
        release(other);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    for (std::size_t at = 0; at < 24 * kMiB; at += 512) REQUIRE(block[at] == 'p');
    release(block);
}

TEST_CASE("what the program maps over a private block is never adopted", "[heap]") {
    trim();  // for a block none of which was adopted
    char* block = new_block(16 * kMiB, 'b');
    auto page = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(block) + 8 * kMiB) &
                                        ~(os::page_bytes() - 1));
    // By the bare system call, which no door sees: a shared mapping, as of a file.
    void* mapped =
        mmap(page, os::page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    REQUIRE(mapped == page);
    page[0] = 'm';
    CHECK_FALSE(adopt(block, 16 * kMiB));
    CHECK_FALSE(is_readable(block, 16 * kMiB));
    CHECK(page[0] == 'm');
    REQUIRE(mmap(page, os::page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                 0) == page);
    std::memset(page, 'b', os::page_bytes());
    CHECK(adopt(block, 16 * kMiB));
    CHECK(agrees(block + os::page_bytes(), 15 * kMiB));
    // A block over which the program has mapped something unseen must not be freed.
}

TEST_CASE("memory of a window is not adopted while it is one", "[heap]") {
    char* block = new_block(16 * kMiB, 'w');
    hold(block + kMiB, kMiB, 1);
    hold(block + 9 * kMiB, kMiB, 1);
    hold(block + 9 * kMiB, 1, 2);
    CHECK(adopt(block + 2 * kMiB, kMiB));
    CHECK_FALSE(adopt(block + kMiB / 2, kMiB));
    CHECK_FALSE(adopt(block + 9 * kMiB - kMiB / 2, kMiB));
    let_go(1, block + 9 * kMiB);
    CHECK_FALSE(is_held(block + 9 * kMiB + 1, kMiB));
    CHECK(is_held(block + 9 * kMiB, 1));
    CHECK_FALSE(adopt(block + kMiB / 2, kMiB));
    let_go(1);
    CHECK(adopt(block + kMiB / 2, kMiB));
    let_go(2);
    CHECK(adopt(block, 16 * kMiB));
    release(block);
}

// A ring of io_uring, by the bare calls. -1: this kernel, or a container, has none.
int open_ring() {
    std::uint64_t parameters[15] = {};  // struct io_uring_params, 120 bytes
    return static_cast<int>(syscall(SYS_io_uring_setup, 1, parameters));
}

TEST_CASE("nothing is adopted while a device may know its pages", "[heap]") {
    char* block =
        new_block(16 * kMiB, 'd');  // As MPI libraries load it: by itself it says nothing of what is pinned.
    dlopen("libucp.so.0", RTLD_NOW);
    const int ring = open_ring();
    if (ring < 0) {
        WARN("no io_uring here");
    } else {
        constexpr unsigned kRegisterBuffers = 0, kUnregisterBuffers = 1;
        iovec buffer{block + kMiB, kMiB};
        REQUIRE(syscall(SYS_io_uring_register, ring, kRegisterBuffers, &buffer, 1) == 0);
        CHECK(os::may_have_pinned_memory());
        CHECK_FALSE(adopt(block, 16 * kMiB));
        REQUIRE(syscall(SYS_io_uring_register, ring, kUnregisterBuffers, nullptr, 0) == 0);
        close(ring);
    }
    CHECK_FALSE(os::may_have_pinned_memory());
    CHECK(adopt(block, 16 * kMiB));
    release(block);
}
