// SPDX-License-Identifier: BSD-3-Clause
// Where pages are, as the kernel says, after os/numa.h has asked for them, if the kernel can be asked.
#include "os/numa.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstddef>
#include <vector>

#include "os/cpu.h"
#include "os/shared_memory.h"
#include "tests/support/map_whole.h"

using namespace coco::os;

namespace {

constexpr unsigned long kBits = 1024, kWordBits = 8 * sizeof(unsigned long);

struct MemoryPolicy {
    int mode = -1;  // -1: the kernel does not tell
    std::vector<unsigned long> domains = std::vector<unsigned long>(kBits / kWordBits);
    bool names(unsigned domain) const { return (domains[domain / kWordBits] >> domain % kWordBits & 1) != 0; }
};

MemoryPolicy memory_policy_of(const std::byte* address) {
    MemoryPolicy policy;
    if (syscall(SYS_get_mempolicy, &policy.mode, policy.domains.data(), kBits + 1, address, MPOL_F_ADDR) != 0)
        policy.mode = -1;
    return policy;
}

int domain_of_page(const std::byte* address) {
    int domain = -1;
    syscall(SYS_get_mempolicy, &domain, nullptr, 0ul, address, MPOL_F_NODE | MPOL_F_ADDR);
    return domain;
}

unsigned domain_here() {
    unsigned cpu = 0, domain = 0;
    REQUIRE(getcpu(&cpu, &domain) == 0);
    return domain;
}

}  // namespace

TEST_CASE("pages are asked from the domain of the thread", "[os]") {
    cpu_set_t before, one;
    REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);  // so that the thread stays in its domain
    const std::uint64_t page = page_bytes(), bytes = 16 * page;
    MemoryObject object = make_memory_object(bytes);
    std::byte* base = test::map_whole(object.fd, bytes);
    std::byte* elsewhere = test::map_whole(object.fd, bytes);  // as in another process
    REQUIRE(base != nullptr);
    REQUIRE(elsewhere != nullptr);

    // From the middle of a page to the middle of another one: what lies between.
    const bool agreed = prefer_here(base + 4 * page + 1, 4 * page);
    CHECK(prefer_here(base + page + 1, page) == true);  // not one whole page
    const MemoryPolicy within = memory_policy_of(base + 5 * page);
    CHECK(agreed == (within.mode == MPOL_PREFERRED));
    if (agreed) {
        CHECK(within.names(domain_here()));
        CHECK(memory_policy_of(base + 7 * page).mode == MPOL_PREFERRED);
        for (std::uint64_t outside : {1, 2, 4, 8})
            CHECK(memory_policy_of(base + outside * page).mode == MPOL_DEFAULT);
        elsewhere[5 * page] = std::byte{1};
        CHECK(domain_of_page(base + 5 * page) == static_cast<int>(domain_here()));
    }
    munmap(elsewhere, bytes);
    munmap(base, bytes);
    close(object.fd);
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
}

TEST_CASE("no range of addresses harms", "[os]") {
    errno = 77;
    CHECK_FALSE(prefer_here(nullptr, page_bytes()));
    CHECK(prefer_here(nullptr, 0));
    CHECK(errno == 77);
}
