// SPDX-License-Identifier: BSD-3-Clause
#include "heap/view.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "os/cpu.h"
#include "os/shared_memory.h"

using namespace coco;
using heap::View;

namespace {

constexpr std::uint64_t kMiB = 1u << 20, kGiB = 1u << 30;
// Heap and room.
constexpr heap::Areas kLarge{{0, 64 * kGiB, 96 * kGiB}};

os::MemoryObject make_object(const heap::Areas& areas) {
    os::MemoryObject object = os::make_memory_object(areas.bytes());
    REQUIRE(object.fd >= 0);
    return object;
}

bool is_mapped(const std::byte* address) {
    const auto page = reinterpret_cast<std::uintptr_t>(address) & ~(os::page_bytes() - 1);
    return msync(reinterpret_cast<void*>(page), 1, MS_ASYNC) == 0 || errno != ENOMEM;
}

std::uint64_t address_space_bytes() {
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    REQUIRE(std::fscanf(file, "%lu", &pages) == 1);
    std::fclose(file);
    return pages * os::page_bytes();
}

}  // namespace

TEST_CASE("a view takes no more address space than is mapped of its areas", "[heap]") {
    const os::MemoryObject object = make_object(kLarge);
    const std::uint64_t before = address_space_bytes();
    View view;
    REQUIRE(view.open(object.fd, kLarge, View::In::owner));
    CHECK(reinterpret_cast<std::uintptr_t>(view.base()) % os::kHugePageBytes == 0);
    CHECK(address_space_bytes() - before < 16 * kMiB);
    for (const heap::Area area : {heap::kHeap, heap::kRoom}) {
        const std::uint64_t begin = kLarge.begin[area];
        CHECK(view.mapped_to(area) == begin + os::kHugePageBytes);
        CHECK_FALSE(is_mapped(view.base() + view.mapped_to(area)));
        REQUIRE(view.extend(area, begin + 100 * kMiB, object.fd));
        view.base()[begin + 100 * kMiB - 1] = std::byte{1};
        CHECK_FALSE(is_mapped(view.base() + begin + 100 * kMiB));
        REQUIRE(view.extend(area, begin + 50 * kMiB, object.fd));
        CHECK(view.mapped_to(area) == begin + 100 * kMiB);
    }
    view.close();
    CHECK(address_space_bytes() - before < 16 * kMiB);
    close(object.fd);
}

TEST_CASE("a peer stretches its view without a descriptor", "[heap]") {
    os::MemoryObject object = make_object(kLarge);
    View owner, peer;
    REQUIRE(owner.open(object.fd, kLarge, View::In::owner));
    REQUIRE(peer.open(object.fd, kLarge, View::In::others));
    for (const heap::Area area : {heap::kHeap, heap::kRoom})
        REQUIRE(owner.extend(area, kLarge.begin[area] + kGiB, object.fd));
    close(object.fd);
    for (const heap::Area area : {heap::kHeap, heap::kRoom})
        for (const std::uint64_t bytes : {10 * kMiB, 11 * kMiB, kGiB}) {
            REQUIRE(peer.extend(area, kLarge.begin[area] + bytes));
            const std::uint64_t last = kLarge.begin[area] + bytes - 1;
            owner.base()[last] = std::byte{7};
            CHECK(peer.base()[last] == std::byte{7});
            if (bytes < kGiB) CHECK_FALSE(is_mapped(peer.base() + last + 1));
        }
    peer.close();
    owner.close();
}

TEST_CASE("a view does not take what others have mapped in its place", "[heap]") {
    const os::MemoryObject object = make_object(kLarge);
    View view;
    REQUIRE(view.open(object.fd, kLarge, View::In::owner));
    std::byte* wished = view.base() + 8 * kMiB;
    void* others = mmap(wished, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(others == wished);
    *wished = std::byte{5};
    for (const int fd : {object.fd, -1}) CHECK_FALSE(view.extend(heap::kHeap, 16 * kMiB, fd));
    CHECK(*wished == std::byte{5});
    CHECK(view.mapped_to(heap::kHeap) == os::kHugePageBytes);
    munmap(others, kMiB);
    CHECK(view.extend(heap::kHeap, 16 * kMiB, object.fd));
    view.close();
    close(object.fd);
}

TEST_CASE("a view of a process of locked memory stays sparse", "[heap]") {
    constexpr heap::Areas kSmall{{0, 64 * kMiB, 64 * kMiB}};
    const os::MemoryObject object = make_object(kSmall);
    if (mlockall(MCL_FUTURE) != 0) return;  // not allowed here
    View view;
    if (view.open(object.fd, kSmall, View::In::owner)) {  // not where little may be locked
        REQUIRE(view.extend(heap::kHeap, 32 * kMiB, object.fd));
        REQUIRE(view.extend(heap::kHeap, 64 * kMiB));
        struct stat facts {};
        REQUIRE(fstat(object.fd, &facts) == 0);
        CHECK(facts.st_blocks == 0);
        view.close();
    }
    CHECK(munlockall() == 0);
    close(object.fd);
}
