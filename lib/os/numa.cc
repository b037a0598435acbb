// SPDX-License-Identifier: BSD-3-Clause
#include "os/numa.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>

#include "base/bits.h"
#include "base/kernel.h"
#include "os/cpu.h"

namespace coco::os {
namespace {

// As many as Linux can be built for.
constexpr unsigned kMostDomains = 1024;
constexpr unsigned kWordBits = 8 * sizeof(unsigned long);

struct Domains {
    unsigned long words[kMostDomains / kWordBits] = {};
    void add(unsigned domain) { words[domain / kWordBits] |= 1ul << domain % kWordBits; }
};

bool prefer(unsigned domain, void* address, std::uint64_t bytes) {
    if (domain >= kMostDomains) return false;
    const auto from = reinterpret_cast<std::uint64_t>(address), page = page_bytes();
    const std::uint64_t begin = base::round_up(from, page), end = (from + bytes) & ~(page - 1);
    if (begin >= end) return true;
    Domains one;
    one.add(domain);
    // The kernel counts one bit less than it is told.
    return kernel::call(SYS_mbind, static_cast<long>(begin), static_cast<long>(end - begin), MPOL_PREFERRED,
                        reinterpret_cast<long>(one.words), kMostDomains + 1, 0) == 0;
}

}  // namespace

bool prefer_here(void* address, std::uint64_t bytes) {
    unsigned cpu = 0, domain = 0;
    return getcpu(&cpu, &domain) == 0 && prefer(domain, address, bytes);
}

}  // namespace coco::os
