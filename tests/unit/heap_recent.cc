// SPDX-License-Identifier: BSD-3-Clause
// The few blocks that a thread freed last and gets back. Run as a rank.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "heap/arenas.h"
#include "heap/heap.h"
#include "heap/recent_blocks.h"
#include "heap/segment.h"

using namespace coco::heap;

namespace {

constexpr std::size_t kKiB = 1u << 10, kMiB = 1u << 20;

std::uint64_t allocated_bytes() { return allocator_figures().allocated_bytes; }

// So much that the sizes of other blocks, which come and go meanwhile, do not matter.
constexpr std::size_t kSlack = 64 * kKiB;

}  // namespace

TEST_CASE("a thread gets back the block that it has just freed", "[heap]") {
    for (std::size_t bytes : {kRecentFrom, 100 * kKiB, 256 * kKiB, 300 * kKiB, 2 * kMiB, kRecentBytes}) {
        drop_recent();
        void* block = allocate(bytes);
        CHECK(is_shared(block, bytes) == (bytes <= 256 * kKiB || is_on_segment(Arena::middle)));
        release(block);
        for (int i = 0; i < 10; ++i) {
            void* again = allocate(bytes);
            CHECK(again == block);
            std::memset(again, i, bytes);
            release(again);
        }
    }
}

TEST_CASE("a block much larger than needed is not handed out", "[heap]") {
    drop_recent();
    void* block = allocate(kMiB);
    release(block);
    void* small = allocate(300 * kKiB);
    CHECK(usable_bytes(small) < 512 * kKiB);
    CHECK(small != block);
    void* larger = allocate(usable_bytes(block) + 1);
    CHECK(usable_bytes(larger) > usable_bytes(block));
    release(larger);
    release(small);
}

TEST_CASE("a block that is handed out again reads as zeros where that is asked for", "[heap]") {
    for (std::size_t bytes : {kRecentFrom, 100 * kKiB, 3 * kMiB}) {
        drop_recent();
        void* block = allocate(bytes);
        std::memset(block, 0x5a, usable_bytes(block));
        release(block);
        auto* zeroed = static_cast<unsigned char*>(allocate_zeroed(bytes / 8, 8));
        CHECK(zeroed == block);
        CHECK(std::all_of(zeroed, zeroed + bytes, [](unsigned char byte) { return byte == 0; }));
        release(zeroed);
    }
}

TEST_CASE("a thread holds no more than 8 MiB and four blocks", "[heap]") {
    drop_recent();
    const std::uint64_t before = allocated_bytes();
    std::array<void*, 20> blocks;
    for (void*& block : blocks) block = allocate(3 * kMiB);
    for (void* block : blocks) release(block);
    CHECK(allocated_bytes() <= before + kRecentBytes + kSlack);
    CHECK(allocated_bytes() >= before + 6 * kMiB);
    for (void*& block : blocks) block = allocate(500 * kKiB);
    for (void* block : blocks) release(block);
    CHECK(allocated_bytes() <= before + 4 * 512 * kKiB + kSlack);
    drop_recent();
    CHECK(allocated_bytes() <= before + kSlack);
}

TEST_CASE("what a thread holds goes back when memory is trimmed", "[heap]") {
    trim();
    const std::uint64_t before = allocated_bytes();
    release(allocate(4 * kMiB));
    CHECK(allocated_bytes() > before + 3 * kMiB);
    CHECK(trim());
    CHECK(allocated_bytes() <= before + kSlack);
}

TEST_CASE("what a thread holds goes back with the heap's other unused memory", "[heap]") {
    drop_recent();
    for (int i = 0; i < 100; ++i) tend();
    const std::uint64_t before = allocated_bytes();
    release(allocate(4 * kMiB));
    usleep(1'200'000);
    for (int i = 0; i < 100; ++i) tend();
    CHECK(allocated_bytes() <= before + kSlack);
}

TEST_CASE("a thread that ends holds no block any more", "[heap]") {
    drop_recent();
    std::thread([] {}).join();  // what the first thread costs
    const std::uint64_t before = allocated_bytes();
    for (int i = 0; i < 20; ++i)
        std::thread([] {
            release(allocate(kMiB));
            release(allocate(5 * kMiB));
        }).join();
    CHECK(allocated_bytes() <= before + kSlack);
}

TEST_CASE("a block that another thread freed is no longer this thread's", "[heap]") {
    drop_recent();
    void* block = allocate(kMiB);
    std::thread([&] { release(block); }).join();
    // The address may come back for another size; its free must take that size.
    std::vector<void*> others;
    for (int i = 0; i < 200; ++i) others.push_back(allocate(40 * kKiB + static_cast<std::size_t>(i) * kKiB));
    for (void* other : others) std::memset(other, 1, 40 * kKiB);
    for (void* other : others) release(other);
    void* again = allocate(kMiB);
    CHECK(usable_bytes(again) >= kMiB);
    std::memset(again, 2, kMiB);
    release(again);
}

TEST_CASE("a forked child and its parent have blocks of their own", "[heap]") {
    drop_recent();
    for (std::size_t bytes : {100 * kKiB, 2 * kMiB}) {
        auto* block = static_cast<char*>(allocate(bytes));
        std::memset(block, 'p', bytes);
        release(block);
        const pid_t child = fork();
        if (child == 0) {
            auto* mine = static_cast<char*>(allocate(bytes));
            std::memset(mine, 'c', bytes);
            usleep(50'000);
            const bool good = std::all_of(mine, mine + bytes, [](char byte) { return byte == 'c'; });
            release(mine);
            _exit(good ? 0 : 1);
        }
        auto* mine = static_cast<char*>(allocate(bytes));
        std::memset(mine, 'q', bytes);
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(status == 0);
        CHECK(std::all_of(mine, mine + bytes, [](char byte) { return byte == 'q'; }));
        release(mine);
    }
}

// No block is handed out twice, whoever frees it.
TEST_CASE("blocks of many sizes, passed between threads, keep their contents", "[heap]") {
    constexpr int kThreads = 4, kTurns = 2000;
    struct Slot {
        std::atomic<unsigned char*> block{nullptr};
    };
    std::array<Slot, 16> slots;
    std::atomic<int> wrong{0};
    // The first 8 bytes say how many follow; the last one, and the middle one, are made of the address.
    const auto mark = [](unsigned char* block) {
        return static_cast<unsigned char>((reinterpret_cast<std::uintptr_t>(block) >> 12) * 37);
    };
    const auto check_and_free = [&](unsigned char* block) {
        if (block == nullptr) return;
        std::uint64_t bytes = 0;
        std::memcpy(&bytes, block, 8);
        if (bytes < kRecentFrom || block[bytes - 1] != mark(block) || block[bytes / 2] != mark(block))
            ++wrong;
        release(block);
    };
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < kThreads; ++seed)
        threads.emplace_back([&, seed] {
            std::mt19937 random(seed);
            for (int i = 0; i < kTurns; ++i) {
                const std::uint64_t bytes = kRecentFrom + random() % (i % 8 == 0 ? 9 * kMiB : 400 * kKiB);
                auto* block = static_cast<unsigned char*>(random() % 4 == 0 ? allocate_zeroed(bytes, 1)
                                                                            : allocate(bytes));
                if (random() % 8 == 0) block = static_cast<unsigned char*>(reallocate(block, bytes));
                std::memcpy(block, &bytes, 8);
                block[bytes - 1] = block[bytes / 2] = mark(block);
                check_and_free(slots[random() % slots.size()].block.exchange(block));
            }
        });
    for (std::thread& thread : threads) thread.join();
    for (Slot& slot : slots) check_and_free(slot.block.exchange(nullptr));
    CHECK(wrong == 0);
}
