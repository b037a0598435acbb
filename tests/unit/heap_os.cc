// SPDX-License-Identifier: BSD-3-Clause
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdarg>
#include <thread>

#include "heap/segment.h"
#include "os/clock.h"
#include "os/cpu.h"
#include "os/futex.h"
#include "os/numa.h"
#include "os/process.h"
#include "os/process_memory.h"
#include "os/shared_memory.h"
#include "tests/support/map_whole.h"

using namespace coco::os;

namespace {

using Bounds = std::pair<std::uint64_t, std::uint64_t>;
constexpr Bounds kNothing{0, 0};

Bounds range_of(Written&& written, std::uint64_t from, std::uint64_t limit) {
    const auto [begin, end] = written.next(from, limit);
    return begin == end ? kNothing : Bounds(begin, end);
}
Bounds range_of(Written& written, std::uint64_t from, std::uint64_t limit) {
    return range_of(std::move(written), from, limit);
}

}  // namespace

TEST_CASE("memory objects are sparse, punched and told apart", "[os]") {
    Via via = GENERATE(Via::memfd, Via::shm_open);
    constexpr std::uint64_t kBytes = 64u << 20;
    MemoryObject object = make_memory_object(kBytes, via);
    REQUIRE(object.fd >= 0);
    CHECK(object.on_mount == (via == Via::shm_open));
    std::byte* base = test::map_whole(object.fd, kBytes);
    REQUIRE(base != nullptr);

    CHECK(range_of(Written(object.fd), 0, kBytes) == kNothing);
    std::fill_n(base + 5 * page_bytes(), page_bytes(), std::byte{1});
    std::fill_n(base + 6 * page_bytes(), page_bytes(), std::byte{2});
    Written written(object.fd);
    const auto page = [](std::uint64_t from, std::uint64_t to) {
        return std::pair(from * page_bytes(), to * page_bytes());
    };
    CHECK(range_of(written, 0, kBytes) == page(5, 7));
    CHECK(range_of(written, 0, 6 * page_bytes()) == page(5, 6));
    CHECK(range_of(written, 0, 5 * page_bytes()) == kNothing);
    CHECK(range_of(written, 6 * page_bytes(), kBytes) == page(6, 7));
    CHECK(range_of(written, 7 * page_bytes(), kBytes) == kNothing);
    CHECK(range_of(written, 0, kBytes) == page(5, 7));  // also out of order

    CHECK(punch_hole(base + 5 * page_bytes(), page_bytes()) == advice_is_heeded());
    CHECK(punch_hole(object.fd, 5 * page_bytes(), page_bytes()));
    CHECK(base[5 * page_bytes()] == std::byte{0});
    CHECK(base[6 * page_bytes()] == std::byte{2});
    CHECK(reserve_pages(object.fd, 0, 16 * page_bytes()));
    struct stat facts {};
    REQUIRE(fstat(object.fd, &facts) == 0);
    CHECK(facts.st_blocks * 512 >= 16 * static_cast<long>(page_bytes()));
    munmap(base, kBytes);
    close(object.fd);
}

TEST_CASE("an unknown descriptor counts as all written", "[os]") {
    CHECK(range_of(Written(-1), 4096, 8192) == std::pair<std::uint64_t, std::uint64_t>(4096, 8192));
    CHECK(range_of(Written(-1), 8192, 8192) == kNothing);
}

namespace {
unsigned long g_ptracer = 0;
}
// In the place of the C library's.
extern "C" int prctl(int option, ...) {
    va_list rest;
    va_start(rest, option);
    if (option == PR_SET_PTRACER) g_ptracer = va_arg(rest, unsigned long);
    va_end(rest);
    errno = EINVAL;
    return -1;
}

TEST_CASE("Yama is asked to let others read, and errno stays", "[os]") {
    errno = 0;
    let_others_read();
    CHECK(g_ptracer == PR_SET_PTRACER_ANY);
    CHECK(errno == 0);
}

TEST_CASE("huge pages are made of shared memory, and what is there stays", "[os]") {
    MemoryObject object = make_memory_object(4 * kHugePageBytes);
    std::byte* base = test::map_whole(object.fd, 4 * kHugePageBytes);
    auto* first = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(base) + kHugePageBytes - 1) &
                                               ~(kHugePageBytes - 1));
    first[kHugePageBytes + 4711] = std::byte{7};
    make_huge(first, 2 * kHugePageBytes);
    CHECK(first[kHugePageBytes + 4711] == std::byte{7});
    CHECK(first[0] == std::byte{0});
    struct stat facts {};
    REQUIRE(fstat(object.fd, &facts) == 0);
    // The kernel may have none to give.
    if (can_collapse(first)) CHECK(facts.st_blocks * 512 <= 2 * static_cast<long>(kHugePageBytes));
    munmap(base, 4 * kHugePageBytes);
    close(object.fd);
}

TEST_CASE("identity is stable, cookies are not", "[os]") {
    CHECK(host_identity() == host_identity());
    std::uint64_t first = random_cookie();
    CHECK(first != 0);
    CHECK(first != random_cookie());
}

TEST_CASE("room for the library itself comes from the domain of its owner", "[os]") {
    const std::uint64_t bytes = 4 * page_bytes();
    std::byte* asked = coco::heap::take_room(bytes);
    std::byte* room = coco::heap::take_room(bytes);
    REQUIRE(asked != nullptr);
    REQUIRE(room != nullptr);
    if (!prefer_here(asked, bytes)) return;  // the kernel refuses, as in some containers
    int mode = -1;
    unsigned long domains[16] = {};
    REQUIRE(syscall(SYS_get_mempolicy, &mode, domains, 1025ul, room + page_bytes(), MPOL_F_ADDR) == 0);
    unsigned cpu = 0, domain = 0;
    REQUIRE(getcpu(&cpu, &domain) == 0);
    CHECK(mode == MPOL_PREFERRED);
    CHECK((domains[domain / 64] >> domain % 64 & 1) != 0);
}

TEST_CASE("a futex sleeper is woken, and does not sleep on a changed word", "[os]") {
    std::atomic<std::uint32_t> word{0};
    futex_wait(word, 1, 60'000'000'000u);  // returns at once: the word is not 1
    std::atomic<bool> woken{false};
    std::thread sleeper([&] {
        while (word.load() == 0) futex_wait(word, 0, 60'000'000'000u);
        woken = true;
    });
    word = 1;
    futex_wake_all(word);
    sleeper.join();
    CHECK(woken);
    std::uint64_t before = now_ns();
    futex_wait(word, 1, 1'000'000);
    CHECK(now_ns() > before);
}
