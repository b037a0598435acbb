// SPDX-License-Identifier: BSD-3-Clause
// Small, middle and large blocks: where they lie, what is populated of them, and that they keep their bytes.
// Run as a rank.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "heap/arenas.h"
#include "heap/heap.h"
#include "heap/mapping_calls.h"
#include "heap/parts.h"
#include "heap/process_facts.h"
#include "heap/segment.h"
#include "os/cpu.h"
#include "os/next_calls.h"
#include "tests/support/map_whole.h"

using namespace coco;
using namespace coco::heap;

namespace {

// As where the system has none, before the heap asks.
__attribute__((constructor)) void refuse_huge_pages() {
    if (std::getenv("TEST_WITHOUT_HUGE_PAGES") != nullptr) prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

constexpr std::size_t kMiB = 1u << 20;

char* new_block(std::size_t bytes, char fill) {
    auto* block = static_cast<char*>(allocate(bytes));
    std::memset(block, fill, bytes);
    return block;
}

bool holds(const char* block, std::size_t bytes, char wanted) {
    for (std::size_t at = 0; at < bytes; at += 509)
        if (block[at] != wanted) return false;
    return block[bytes - 1] == wanted;
}

bool is_zero(const char* block, std::size_t bytes) { return holds(block, bytes, 0); }

bool is_shared_mode() { return mode() == base::HeapMode::shared; }

// The resident bytes of this process, of one kind: RssShmem or RssAnon.
std::size_t resident_bytes(const std::string& kind) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (word == kind + ":") {
            std::size_t kib = 0;
            status >> kib;
            return kib * 1024;
        }
    return 0;
}

}  // namespace

TEST_CASE("small and middle blocks are shared, large ones private", "[heap]") {
    if (std::getenv("TEST_WITHOUT_HUGE_PAGES") != nullptr)
        CHECK(is_on_segment(Arena::middle) == is_shared_mode());
    char* small = new_block(kMiddle - 1, 's');
    char* middle = new_block(kLarge - 1, 'm');
    char* large = new_block(kLarge, 'l');
    CHECK(is_shared(small, kMiddle - 1));
    CHECK(is_shared(middle, kLarge - 1) == is_on_segment(Arena::middle));
    CHECK(is_shared(large, kLarge) == is_shared_mode());
    auto* asked = static_cast<char*>(allocate_shared(64, 2 * kLarge));
    CHECK(is_shared(asked, 2 * kLarge));
    for (char* block : {small, middle, large, asked}) release(block);
}

TEST_CASE("large blocks are born as middle ones where ranks cannot read each other", "[heap]") {
    share_large_blocks(true);
    char* large = new_block(kLarge, 'l');
    CHECK(is_shared(large, kLarge) == is_on_segment(Arena::middle));
    share_large_blocks(false);
    large = static_cast<char*>(reallocate(large, 3 * kLarge));
    CHECK(is_shared(large, 3 * kLarge) == is_shared_mode());
    CHECK(std::string_view(large, kLarge) == std::string(kLarge, 'l'));
    release(large);
}

TEST_CASE("a peer reads what stands in a middle block", "[heap]") {
    if (!is_on_segment(Arena::middle)) return;
    static std::byte* view = test::map_whole(own().fd, own().bytes);
    for (std::size_t bytes : {kMiddle, 3 * kMiB + 5, kLarge - 1}) {
        char* block = new_block(bytes, 'm');
        CHECK(std::memcmp(block, view + offset_of(block), bytes) == 0);
        release(block);
    }
}

TEST_CASE("no more is populated than is allocated, an eighth and some MiB", "[heap]") {
    if (!can_make_huge() || is_shared_mode()) return;
    trim();
    const std::size_t before = resident_bytes("RssShmem");
    std::vector<void*> blocks;
    std::size_t allocated = 0;
    for (std::size_t bytes = kMiddle; bytes < 8 * kMiB; bytes += bytes / 3, allocated += bytes)
        blocks.push_back(allocate(bytes));
    CHECK(resident_bytes("RssShmem") - before <= allocated + allocated / 4 + 8 * kMiB);
    for (void* block : blocks) release(block);
    trim();
    CHECK(resident_bytes("RssShmem") <= before + 8 * kMiB);
}

TEST_CASE("large blocks are touched page by page where they are not filled", "[heap]") {
    if (is_shared_mode()) return;
    const std::size_t before = resident_bytes("RssAnon");
    auto* sparse = static_cast<char*>(allocate(1024 * kMiB));
    for (std::size_t at = 0; at < 1024 * kMiB; at += 128 * kMiB) sparse[at] = 1;
    CHECK(resident_bytes("RssAnon") - before <= 8 * 2 * kMiB + kMiB);
    release(sparse);
    CHECK(resident_bytes("RssAnon") <= before + kMiB);
}

TEST_CASE("freed blocks are taken again, as zeros where that is asked for", "[heap]") {
    for (std::size_t bytes : {kMiddle, 5 * kMiB, 20 * kMiB, 40 * kMiB, 90 * kMiB})
        for (int turn = 0; turn < 4; ++turn) {
            auto* zeroed = static_cast<char*>(allocate_zeroed(bytes, 1));
            REQUIRE(is_zero(zeroed, bytes));
            std::memset(zeroed, 'z', bytes);
            release(zeroed);
            release(new_block(bytes, 'x'));
            if (turn == 2) trim();
        }
}

TEST_CASE("a block that grows keeps its bytes, with others in its way", "[heap]") {
    std::size_t bytes = 1000;
    char* block = new_block(bytes, 'g');
    std::vector<char*> others;
    int moves = 0;
    while (bytes < 200 * kMiB) {
        const std::size_t more = bytes + bytes / 3 + 777;
        auto* grown = static_cast<char*>(reallocate(block, more));
        moves += bytes > 64 * kMiB && grown != block;
        block = grown;
        REQUIRE(usable_bytes(block) >= more);
        REQUIRE(holds(block, bytes, 'g'));
        std::memset(block + bytes, 'g', more - bytes);
        bytes = more;
        if (bytes < 64 * kMiB) others.push_back(new_block(kMiB, 'o'));
    }
    if (!is_shared_mode()) CHECK(moves == 0);
    for (std::size_t less : {40 * kMiB, 6 * kMiB, 300'000ul, 1000ul}) {
        block = static_cast<char*>(reallocate(block, less));
        REQUIRE(holds(block, less, 'g'));
    }
    for (char* other : others) {
        REQUIRE(holds(other, kMiB, 'o'));
        release(other);
    }
    release(block);
}

TEST_CASE("a forked child has copies of blocks of all classes", "[heap]") {
    const std::size_t sizes[] = {1000, 5 * kMiB, 50 * kMiB};
    char* blocks[3];
    for (int i = 0; i < 3; ++i) blocks[i] = new_block(sizes[i], 'p');
    const pid_t child = fork();
    if (child == 0) {
        bool good = true;
        for (int i = 0; i < 3; ++i) {
            good = good && holds(blocks[i], sizes[i], 'p');
            std::memset(blocks[i], 'c', sizes[i]);
            release(blocks[i]);
            char* other = new_block(sizes[i], 'o');
            good = good && holds(other, sizes[i], 'o') && !is_shared(other);
            other = static_cast<char*>(reallocate(other, 3 * sizes[i]));
            good = good && holds(other, sizes[i], 'o');
            release(other);
        }
        _exit(good ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    for (int i = 0; i < 3; ++i) {
        CHECK(holds(blocks[i], sizes[i], 'p'));
        release(blocks[i]);
    }
}

TEST_CASE("threads that allocate and free at once keep their bytes", "[heap]") {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (char t = 0; t < 4; ++t)
        threads.emplace_back([&wrong, t] {
            for (int i = 0; i < 60; ++i) {
                const std::size_t bytes = 200'000 + static_cast<std::size_t>(i % 7) * 1'300'000;
                char* blocks[3];
                for (char*& block : blocks) block = new_block(bytes, t);
                for (char* block : blocks) {
                    wrong += !holds(block, bytes, t);
                    release(block);
                }
                if (i % 16 == 0) trim();
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
}

namespace {

std::size_t address_space_bytes() {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * os::page_bytes();
}

template <class Life>
bool succeeds_in_child(Life life) {
    const pid_t child = fork();
    if (child == 0) _exit(life() ? 0 : 1);
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

TEST_CASE("what the machine refuses takes no addresses", "[heap]") {
    const std::size_t before = address_space_bytes();
    for (int i = 0; i < 300; ++i) CHECK(allocate(std::size_t{1} << 44) == nullptr);
    CHECK(address_space_bytes() - before < std::size_t{4} << 30);
}

TEST_CASE("under a limit on the address space freed blocks give theirs back", "[heap]") {
    CHECK(succeeds_in_child([] {
        const rlimit limit{address_space_bytes() + (std::size_t{6} << 30), RLIM_INFINITY};
        if (setrlimit(RLIMIT_AS, &limit) != 0) return false;
        for (std::size_t gib = 1; gib < 6; ++gib) {
            void* block = allocate(gib << 30);
            if (block == nullptr) return false;
            release(block);
        }
        return true;
    }));
}

TEST_CASE("holes in private memory are no mappings each", "[heap]") {
    // A child has no segment.
    CHECK(succeeds_in_child([] {
        std::vector<void*> blocks;
        for (int i = 0; i < 20'000; ++i) blocks.push_back(new_block(40'000, 'h'));
        for (std::size_t i = 0; i < blocks.size(); i += 2) release(blocks[i]);
        trim();
        std::ifstream maps("/proc/self/maps");
        int lines = 0;
        for (std::string line; std::getline(maps, line);) ++lines;
        return lines < 1000;
    }));
}

namespace {

// As the door of mprotect does.
int shut(char* at) { return program_mprotect(os::next_calls(), at, os::page_bytes(), PROT_NONE); }
char* page_within(char* block) {
    return reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(block) + 2 * kMiB) &
                                   ~(os::page_bytes() - 1));
}

}  // namespace

TEST_CASE("pages that the program has shut are open for the next block", "[heap]") {
    for (std::size_t bytes : {4 * kMiB, 50 * kMiB}) {
        std::vector<char*> blocks;
        for (int i = 0; i < 5; ++i) {
            blocks.push_back(new_block(bytes, 'g'));
            REQUIRE(shut(page_within(blocks.back())) == 0);
        }
        for (char* block : blocks) release(block);
        for (char*& block : blocks) block = new_block(bytes, 'n');
        for (char* block : blocks) {
            CHECK(holds(block, bytes, 'n'));
            release(block);
        }
    }
}

TEST_CASE("memory does not grow by blocks over which the program maps something each time", "[heap]") {
    if (is_on_segment(Arena::middle)) return;  // there such a block stays with the program
    const std::size_t before = address_space_bytes();
    for (int i = 0; i < 300; ++i) {
        char* block = new_block(4 * kMiB, 'b');
        char* at = page_within(block);
        REQUIRE(program_mmap(os::next_calls(), at, os::page_bytes(), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
        at[0] = 'm';
        release(block);
    }
    CHECK(address_space_bytes() <= before + 64 * kMiB);
}

TEST_CASE("what the program has mapped over a block is not written to by the next one", "[heap]") {
    char* block = new_block(4 * kMiB, 'b');
    const std::size_t page = os::page_bytes();
    auto* at = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(block) + 2 * kMiB) & ~(page - 1));
    // As the door of mmap does.
    const int file = memfd_create("file", 0);
    REQUIRE(ftruncate(file, static_cast<off_t>(page)) == 0);
    REQUIRE(program_mmap(os::next_calls(), at, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                         0) == at);
    at[0] = 'm';
    CHECK_FALSE(is_shared(block, 4 * kMiB));
    release(block);
    for (int i = 0; i < 8; ++i) release(new_block(4 * kMiB, 'o'));
    char kept = 0;
    CHECK(pread(file, &kept, 1, 0) == 1);
    CHECK(kept == 'm');
    close(file);
}
