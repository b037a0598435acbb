// SPDX-License-Identifier: BSD-3-Clause
// Memory outside the segment that is adopted: static data, stacks, the program's own mappings. Run as a rank; a second time,
// without the cases [small], as on a kernel that tells mappings by their list alone (TEST_OLDER_KERNEL=1).
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <pty.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <functional>

#include "heap/heap.h"
#include "heap/held.h"
#include "heap/mapping_calls.h"
#include "heap/outside.h"
#include "heap/private_blocks.h"
#include "heap/segment.h"
#include "os/cpu.h"
#include "os/next_calls.h"
#include "os/own_mappings.h"
#include "os/shared_memory.h"
#include "support/counting_neighbor.h"
#include "support/older_kernel.h"
#include "tests/support/map_whole.h"

using namespace coco;
using namespace coco::heap;

namespace {

const bool g_is_older_kernel = test::is_older_kernel_wanted() && test::refuse_mapping_questions();

constexpr std::size_t kMiB = 1u << 20;
constexpr std::size_t kBytes = 6 * kMiB;

char g_static[kBytes];
char g_other_static[kBytes];

char* map(std::size_t bytes = kBytes, int flags = 0) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    REQUIRE(mapped != MAP_FAILED);
    return static_cast<char*>(mapped);
}

// The segment as a peer maps it.
const char* peers_view() {
    static std::byte* view = test::map_whole(own().fd, own().bytes);
    return reinterpret_cast<const char*>(view);
}

// Whether peers read what this process has there.
bool agrees(const char* at, std::size_t bytes) {
    const std::byte* shown = readable_at(at, bytes);
    if (shown == nullptr) return false;
    refresh_shadows(at, bytes);
    return std::memcmp(at, peers_view() + offset_of(shown), bytes) == 0;
}

void scramble(char* at, std::size_t bytes, unsigned seed) {
    for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<char>((i * 31 + seed) >> 3);
}
bool is_scrambled(const char* at, std::size_t bytes, unsigned seed) {
    for (std::size_t i = 0; i < bytes; ++i)
        if (at[i] != static_cast<char>((i * 31 + seed) >> 3)) return false;
    return true;
}

// Of the segment's file.
std::uint64_t used_bytes() {
    struct stat facts {};
    REQUIRE(fstat(own().fd, &facts) == 0);
    return static_cast<std::uint64_t>(facts.st_blocks) * 512;
}

std::byte* bytes_at(char* at) { return reinterpret_cast<std::byte*>(at); }

// Runs it in a thread of 16 MiB of stack, more than the C library keeps for the next one when many are kept.
void in_thread(std::function<void()> work) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * kMiB);
    pthread_t thread;
    auto run = [](void* work) -> void* {
        (*static_cast<std::function<void()>*>(work))();
        return nullptr;
    };
    REQUIRE(pthread_create(&thread, &attributes, run, &work) == 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
}

void come_back_to(char* memory) {
    for (std::size_t skip : {0u, 1u, 4095u, 5000u, 100'000u}) {
        char* begin = memory + skip;
        const std::size_t bytes = 5 * kMiB + 3 * skip + 77;
        scramble(begin, bytes, static_cast<unsigned>(skip));
        CHECK(adopt(begin, bytes));
        CHECK(is_scrambled(begin, bytes, static_cast<unsigned>(skip)));
        CHECK(agrees(begin, bytes));
        scramble(begin, bytes, 99);
        CHECK(agrees(begin, bytes));
        CHECK(agrees(begin + 10'000, bytes - 50'000));
    }
}

// Whether a child of that fork has memory of its own there, and its parent keeps its own.
template <class Fork>
void share_nothing_with_child(char* memory, std::size_t bytes, Fork make_child) {
    scramble(memory, bytes, 1);
    CHECK(adopt(memory, bytes));
    const pid_t child = make_child();
    if (child == 0) {
        bool good = is_scrambled(memory, bytes, 1) && !adopt(memory, bytes);
        std::memset(memory, 'c', bytes);
        _exit(good ? 0 : 1);
    }
    REQUIRE(child > 0);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(is_scrambled(memory, bytes, 1));
    CHECK(adopt(memory, bytes));  // of a stack some pages may be private again
    CHECK(agrees(memory, bytes));
}

}  // namespace

TEST_CASE("the kernel is as old as this run wants it", "[heap]") {
    if (test::is_older_kernel_wanted()) CHECK(g_is_older_kernel);
    CHECK(os::can_ask_for_mappings() != test::is_older_kernel_wanted());
    static char small[64 * 1024];
    CHECK(adopt(small, sizeof small) != test::is_older_kernel_wanted());
}

TEST_CASE("peers read adopted static data, mappings and stacks", "[heap]") {
    come_back_to(g_static);
    char* mapped = map();
    come_back_to(mapped);
    munmap(mapped, kBytes);
    char on_stack[kBytes];
    come_back_to(on_stack);
    in_thread([] {
        char on_threads_stack[kBytes];
        come_back_to(on_threads_stack);
    });
}

TEST_CASE("what lies beside adopted static data may be written meanwhile", "[heap]") {
    char *begin = g_static + kMiB + 123, *end = begin + 3 * kMiB;
    std::memset(g_static, 0, sizeof g_static);
    test::CountingNeighbor neighbor(begin, end);
    for (int i = 0; i < 20; ++i) {
        char* from = begin + static_cast<std::size_t>(i) * os::page_bytes();
        CHECK(adopt(from, static_cast<std::size_t>(end - from)));
        CHECK(agrees(from, static_cast<std::size_t>(end - from)));
    }
    CHECK(neighbor.done());
}

TEST_CASE("a mapping that is unmapped is forgotten, and its memory goes back", "[heap]") {
    for (bool by_door : {true, false}) {
        const std::uint64_t before = used_bytes();
        char* mapped = map();
        std::memset(mapped, 'm', kBytes);
        CHECK(adopt(mapped, kBytes));
        CHECK(used_bytes() >= before + kBytes);
        if (by_door)
            CHECK(program_munmap(os::next_calls(), mapped, kBytes) == 0);
        else
            CHECK(os::bare_calls().munmap(mapped, kBytes) == 0);
        CHECK(readable_at(mapped, kBytes) == nullptr);
        if (!by_door) sweep_outside();
        CHECK(used_bytes() < before + kMiB);
        void* again =
            mmap(mapped, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        REQUIRE(again == mapped);
        CHECK(mapped[kMiB] == 0);
        CHECK(readable_at(mapped, kBytes) == nullptr);
        scramble(mapped, kBytes, 3);
        CHECK(adopt(mapped, kBytes));
        CHECK(agrees(mapped, kBytes));
        // Another mapping in its midst.
        char* page = mapped + 3 * kMiB;
        REQUIRE(os::bare_calls().mmap(page, os::page_bytes(), PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page);
        CHECK(readable_at(mapped, kBytes) == nullptr);
        CHECK(agrees(mapped, 2 * kMiB));
        scramble(mapped, kBytes, 4);
        CHECK(adopt(mapped, kBytes));
        CHECK(agrees(mapped, kBytes));
        munmap(mapped, kBytes);
        sweep_outside();
    }
}

TEST_CASE("pages that the program drops read as zeros", "[heap]") {
    char* mapped = map();
    for (int advice : {MADV_DONTNEED, MADV_FREE}) {
        std::memset(mapped, 'd', kBytes);
        CHECK(adopt(mapped, kBytes));
        const std::uint64_t before = used_bytes();
        CHECK(program_madvise(os::next_calls(), mapped + 2 * kMiB, 2 * kMiB, advice) == 0);
        CHECK(used_bytes() <= before - 2 * kMiB + 4 * os::page_bytes());
        CHECK(mapped[2 * kMiB - 1] == 'd');
        CHECK(mapped[2 * kMiB] == 0);
        CHECK(mapped[4 * kMiB] == 'd');
        CHECK(readable_at(mapped, kBytes) == nullptr);
        CHECK(agrees(mapped, 2 * kMiB));
        CHECK(adopt(mapped, kBytes));
        CHECK(agrees(mapped, kBytes));
    }
    errno = 0;
    CHECK(program_madvise(os::next_calls(), mapped, kBytes, MADV_WILLNEED) == 0);
    munmap(mapped, kBytes);
}

TEST_CASE("mappings that move keep their bytes", "[heap]") {
    char* mapped = map();
    scramble(mapped, kBytes, 5);
    CHECK(adopt(mapped + 10, kBytes - 20));
    auto* grown = static_cast<char*>(
        program_mremap(os::next_calls(), mapped, kBytes, 3 * kBytes, MREMAP_MAYMOVE, nullptr));
    REQUIRE(grown != MAP_FAILED);
    CHECK(is_scrambled(grown, kBytes, 5));
    std::memset(grown + kBytes, 1, 2 * kBytes);
    // By the bare call, which moves the adopted pages themselves.
    scramble(grown, 3 * kBytes, 6);
    CHECK(adopt(grown, 3 * kBytes));
    char* moved = map(3 * kBytes);
    REQUIRE(os::bare_calls().mremap(grown, 3 * kBytes, 3 * kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, moved) ==
            moved);
    sweep_outside();
    CHECK(is_scrambled(moved, 3 * kBytes, 6));
    CHECK(readable_at(grown, kBytes) == nullptr);
    CHECK(readable_at(moved, kBytes) == nullptr);
    CHECK_FALSE(adopt(moved, kBytes));
    // What comes to lie at the old addresses must not have the same pages.
    REQUIRE(mmap(grown, 3 * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
            grown);
    scramble(grown, 3 * kBytes, 14);
    CHECK_FALSE(adopt(grown, 3 * kBytes));
    CHECK(is_scrambled(moved, 3 * kBytes, 6));
    munmap(grown, 3 * kBytes);
    const pid_t child = fork();
    if (child == 0) {
        std::memset(moved, 'c', 3 * kBytes);
        _exit(0);
    }
    waitpid(child, nullptr, 0);
    CHECK(is_scrambled(moved, 3 * kBytes, 6));
    munmap(moved, 3 * kBytes);
    const std::uint64_t before = used_bytes();
    sweep_outside();
    CHECK(used_bytes() <= before - 3 * kBytes + kMiB);
}

TEST_CASE("a mapping that grows behind an adopted part has one alias", "[heap]") {
    char* mapped = map(3 * kBytes);
    scramble(mapped, 3 * kBytes, 7);
    CHECK(adopt(mapped + kBytes, kBytes));
    CHECK(agrees(mapped + kBytes, kBytes));
    CHECK(readable_at(mapped, 3 * kBytes) == nullptr);
    CHECK(adopt(mapped, 3 * kBytes));
    CHECK(agrees(mapped, 3 * kBytes));
    CHECK(mprotect(mapped + kMiB, kMiB, PROT_READ) == 0);
    CHECK(agrees(mapped, 3 * kBytes));
    munmap(mapped, 3 * kBytes);
}

TEST_CASE("threads and libraries that end take their adopted pages with them", "[heap]") {
    sweep_outside();
    const std::uint64_t before = used_bytes();
    for (int i = 0; i < 20; ++i)
        in_thread([] {
            char on_stack[kBytes];
            scramble(on_stack, kBytes, 8);
            CHECK(adopt(on_stack, kBytes));
            CHECK(agrees(on_stack, kBytes));
        });
    sweep_outside();
    // The C library keeps 40 MiB of stacks.
    CHECK(used_bytes() <= before + 48 * kMiB);
    for (int i = 0; i < 3; ++i) {
        void* library = dlopen(LARGE_LIBRARY, RTLD_NOW);
        REQUIRE(library != nullptr);
        auto* data = static_cast<char*>(dlsym(library, "large_data"));
        REQUIRE(data != nullptr);
        CHECK(data[kMiB] == 0);
        scramble(data, kBytes, 9);
        CHECK(adopt(data, kBytes));
        CHECK(agrees(data, kBytes));
        REQUIRE(dlclose(library) == 0);
        CHECK(readable_at(data, kBytes) == nullptr);
    }
    sweep_outside();
    CHECK(used_bytes() <= before + 48 * kMiB);
}

TEST_CASE("a forked child has copies of adopted pages outside", "[heap]") {
    char* mapped = map();
    share_nothing_with_child(mapped, kBytes, fork);
    share_nothing_with_child(g_other_static, sizeof g_other_static, fork);
    munmap(mapped, kBytes);
}

constexpr std::size_t kOnStackBytes = 2 * kMiB;

// The frames of a fork lie on pages that were a buffer's before.
__attribute__((noinline)) void adopt_frames_below() {
    char below[kOnStackBytes];
    scramble(below, kOnStackBytes, 11);
    CHECK(adopt(below, kOnStackBytes));
    CHECK(agrees(below, kOnStackBytes));
}
TEST_CASE("a thread whose stack was adopted forks, also from within the C library", "[heap]") {
    auto by_libc = []() -> pid_t {
        int terminal = -1;
        return forkpty(&terminal, nullptr, nullptr, nullptr);
    };
    for (int turn = 0; turn < 5; ++turn) {
        char on_stack[kOnStackBytes];
        adopt_frames_below();
        share_nothing_with_child(on_stack, kOnStackBytes, fork);
        adopt_frames_below();
        share_nothing_with_child(on_stack, kOnStackBytes, by_libc);
        in_thread([&] {
            char on_threads_stack[kOnStackBytes];
            adopt_frames_below();
            share_nothing_with_child(on_threads_stack, kOnStackBytes, fork);
            share_nothing_with_child(on_stack, kOnStackBytes, by_libc);
        });
    }
}

TEST_CASE("what must keep its pages is not adopted", "[heap]") {
    void* shared = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK_FALSE(adopt(shared, kBytes));
    munmap(shared, kBytes);
    const int file = open("/proc/self/exe", O_RDONLY);
    void* of_file = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    CHECK_FALSE(adopt(of_file, 64 * 1024));
    munmap(of_file, kBytes);
    char* mapped = map();
    std::memset(mapped, 'x', kBytes);
    CHECK(mprotect(mapped + kMiB, kMiB, PROT_READ) == 0);
    CHECK_FALSE(adopt(mapped, kBytes));
    CHECK(mprotect(mapped + kMiB, kMiB, PROT_READ | PROT_WRITE) == 0);
    munmap(mapped + kMiB, kMiB);
    CHECK_FALSE(adopt(mapped, kBytes));
    munmap(mapped, kBytes);
    mapped = map();
    heap::hold(bytes_at(mapped) + kMiB, kMiB, 7);
    CHECK_FALSE(adopt(mapped, kBytes));
    heap::let_go(7);
    // By the bare calls: sanitizers let libc's do nothing.
    if (syscall(SYS_mlock, mapped + kMiB, 4096) == 0) {
        CHECK_FALSE(adopt(mapped, kBytes));
        syscall(SYS_munlock, mapped + kMiB, 4096);
    }
    const auto watcher = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
    if (watcher >= 0) {
        CHECK_FALSE(adopt(mapped, kBytes));
        close(watcher);
    }
    CHECK(adopt(mapped, kBytes));
    munmap(mapped, kBytes);
}

TEST_CASE("more mappings than there is room for are left as they are", "[heap][small]") {
    constexpr int kMany = 300;
    static char* maps[kMany];
    constexpr std::size_t kEach = 64 * 1024;
    int adopted = 0;
    for (char*& each : maps) {
        // Not next to one another.
        each = map(kEach + 512 * kMiB, MAP_NORESERVE);
        munmap(each + kEach, 512 * kMiB);
        scramble(each, kEach, 12);
        adopted += adopt(each, kEach) ? 1 : 0;
    }
    CHECK(adopted >= 32);
    for (char* each : maps) {
        REQUIRE(is_scrambled(each, kEach, 12));
        REQUIRE((readable_at(each, kEach) == nullptr || agrees(each, kEach)));
        munmap(each, kEach);
    }
    sweep_outside();
    char* mapped = map();
    CHECK(adopt(mapped, kBytes));
    munmap(mapped, kBytes);
}

TEST_CASE("parts of many adopted arrays are dropped and moved at once", "[heap][small]") {
    constexpr std::size_t kEach = 64 * 1024;
    char* mapped = map();
    std::memset(mapped, 'p', kBytes);
    for (std::size_t at = 100; at + kEach < kBytes; at += kEach) CHECK(adopt(mapped + at, kEach));
    CHECK(adopted_bytes(mapped, kBytes) > kBytes / 2);
    auto* moved = static_cast<char*>(
        program_mremap(os::next_calls(), mapped, kBytes, 2 * kBytes, MREMAP_MAYMOVE, nullptr));
    REQUIRE(moved != MAP_FAILED);
    CHECK(adopted_bytes(moved, 2 * kBytes) == 0);
    CHECK(std::count(moved, moved + kBytes, 'p') == kBytes);
    for (std::size_t at = 100; at + kEach < kBytes; at += kEach) CHECK(adopt(moved + at, kEach));
    errno = 0;
    CHECK(program_mremap(os::next_calls(), moved, 2 * kBytes, 4 * kBytes, 0, nullptr) == MAP_FAILED);
    CHECK(errno == ENOMEM);
    CHECK(program_madvise(os::next_calls(), moved, kBytes, MADV_DONTNEED) == 0);
    CHECK(std::count(moved, moved + kBytes, 0) == kBytes);
    munmap(moved, 2 * kBytes);
}

TEST_CASE("a forked child gets no copies of what the kernel has divided of other views", "[heap]") {
    // As a second view of the segment is where the pages of its parts come from several domains.
    void* view = mmap(nullptr, 4 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, own().fd, 0);
    REQUIRE(view != MAP_FAILED);
    REQUIRE(madvise(view, 4 * kMiB, MADV_DONTFORK) == 0);
    char* mapped = map();
    CHECK(adopt(mapped, kBytes));
    const pid_t child = fork();
    if (child == 0) _exit(msync(view, 4096, MS_ASYNC) == -1 && errno == ENOMEM ? 0 : 1);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    munmap(view, 4 * kMiB);
    munmap(mapped, kBytes);
}

TEST_CASE("a child of the bare system call takes nothing from its parent", "[heap]") {
    char* mapped = map();
    scramble(mapped, kBytes, 15);
    CHECK(adopt(mapped, kBytes));
    // On a stack of which nothing was adopted, which the two would share.
    in_thread([&] {
        const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0) {
            program_madvise(os::next_calls(), mapped, kMiB, MADV_DONTNEED);
            program_munmap(os::next_calls(), mapped, kBytes);
            sweep_outside();
            _exit(0);
        }
        REQUIRE(child > 0);
        waitpid(static_cast<pid_t>(child), nullptr, 0);
    });
    sweep_outside();
    CHECK(is_scrambled(mapped, kBytes, 15));
    CHECK(agrees(mapped, kBytes));
    munmap(mapped, kBytes);
}
