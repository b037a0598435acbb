// SPDX-License-Identifier: BSD-3-Clause
#include "bench/cache/model.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/index.h"

namespace coco::cache {
namespace {

using base::index;
constexpr std::uint32_t kLost = 1u << 31;
constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

}  // namespace

const std::vector<Machine>& machines() {
    static const std::vector<Machine> all = {
        {"phi",
         60,
         1,
         {{32 * kKiB, 8}, {512 * kKiB, 8}},
         "Xeon Phi 5110P: Li, Zhang, Hoefler 2018, section 4; ways: Intel's Xeon Phi system software guide"},
        {"e7",
         72,
         4,
         {{32 * kKiB, 8}, {256 * kKiB, 8}, {45 * kMiB, 20, true}},
         "4 Xeon E7-8890 v3: Li, Zhang, Hoefler 2018, section 4; ways: Intel's optimization manual, Haswell"},
        {"epyc",
         96,
         12,
         {{32 * kKiB, 8}, {kMiB, 8}, {32 * kMiB, 16, true}},
         "EPYC 9654, a domain for each L3: AMD's optimization guide for family 19h, Zen 4"},
        {"xeon",
         112,
         2,
         {{48 * kKiB, 12}, {2 * kMiB, 16}, {105 * kMiB, 15, true}},
         "2 Xeon Platinum 8480+: Intel's product page; ways: its optimization manual, Golden Cove"},
        {"small",
         2,
         1,
         {{32 * kKiB, 8}, {kMiB, 8}, {32 * kMiB, 16, true}},
         "2 cores of an EPYC 9004 in a virtual machine: /sys/devices/system/cpu/cpu0/cache"},
    };
    return all;
}

std::string wrong(const Machine& machine) {
    if (machine.line_bytes < 8 || machine.line_bytes > 4096 || !std::has_single_bit(machine.line_bytes))
        return "a line has a power of two of bytes, 8 to 4096";
    for (const Level& level : machine.levels) {
        if (level.ways == 0 || level.bytes < level.ways * machine.line_bytes)
            return "a cache of " + std::to_string(level.bytes) + " bytes is smaller than its " +
                   std::to_string(level.ways) + " ways of a line each";
        if (level.bytes % (level.ways * machine.line_bytes) != 0)
            return "a cache of " + std::to_string(level.bytes) + " bytes has no whole number of sets";
    }
    return machine.domains > machine.cores ? "a machine has a core for each domain" : "";
}

Cache::Cache(const Level& level, std::uint64_t line_bytes)
    : ways_(level.ways), sets_(level.bytes / (level.ways * line_bytes)), entries_(level.ways * sets_) {
    COCO_CHECK(sets_ > 0, "a cache has a set or more");
}

Cache::Found Cache::touch(Line line) {
    const std::uint32_t entry = line + 1;
    std::uint32_t *const set = set_of(line), *const end = set + ways_;
    std::uint32_t* at = std::find_if(set, end, [&](std::uint32_t e) { return (e & ~kLost) == entry; });
    Found found = Found::absent;
    if (at != end)
        found = (*at & kLost) != 0 ? Found::lost : Found::here;
    else if (*--at != 0)  // no place is empty: in place of what was lost, else of the least recently used
        at = std::find_if(set, at, [](std::uint32_t e) { return (e & kLost) != 0; });
    std::move_backward(set, at, at + 1);
    *set = entry;
    return found;
}

void Cache::lose(Line line) {
    std::uint32_t* const set = set_of(line);
    std::uint32_t* const at = std::find(set, set + ways_, line + 1);
    if (at != set + ways_) *at |= kLost;
}

Caches::Caches(const Machine& machine, std::vector<std::int32_t> domain_of, std::uint64_t lines,
               std::uint64_t prefetched_lines)
    : levels_(machine.levels),
      domain_of_(std::move(domain_of)),
      holders_(lines, kNobody),
      counts_(levels_.size()),
      prefetched_lines_(prefetched_lines) {
    COCO_CHECK(lines < kLost - 1 && domain_of_.size() < kMany, "lines and cores have numbers");
    const std::int32_t domains = *std::max_element(domain_of_.begin(), domain_of_.end()) + 1;
    for (const Level& level : levels_)
        caches_.emplace_back(level.shared ? index(domains) : domain_of_.size(),
                             Cache(level, machine.line_bytes));
}

std::size_t Caches::part_of(std::size_t level, std::int32_t core) const {
    return index(levels_[level].shared ? domain_of_[index(core)] : core);
}

void Caches::fetch(std::int32_t core, Line line) {
    const bool prefetches = prefetched_lines_ != 0 && (line + 1) % prefetched_lines_ != 0;
    bool missed = false;
    for (std::size_t l = 0; l < levels_.size(); ++l) {
        Cache& cache = caches_[l][part_of(l, core)];
        const Cache::Found found = cache.touch(line);
        if (found == Cache::Found::here) break;
        ++counts_[l].missed;
        counts_[l].lost += found == Cache::Found::lost;
        missed = true;
        if (prefetches) cache.touch(line + 1);
    }
    if (missed && prefetches) hold(core, line + 1);
}

void Caches::hold(std::int32_t core, Line line) {
    Holder& holder = holders_[line];
    if (holder != static_cast<Holder>(core)) holder = holder == kNobody ? static_cast<Holder>(core) : kMany;
}

void Caches::read(std::int32_t core, Line line) {
    fetch(core, line);
    hold(core, line);
}

void Caches::take_from(std::int32_t holder, std::int32_t writer, Line line) {
    for (std::size_t l = 0; l < levels_.size(); ++l)
        if (part_of(l, holder) != part_of(l, writer)) caches_[l][part_of(l, holder)].lose(line);
}

void Caches::write(std::int32_t core, Line line) {
    fetch(core, line);
    Holder& holder = holders_[line];
    if (holder == static_cast<Holder>(core)) return;
    if (holder == kMany)
        for (std::int32_t c = 0; c < base::number(domain_of_.size()); ++c) take_from(c, core, line);
    else if (holder != kNobody)
        take_from(holder, core, line);
    holder = static_cast<Holder>(core);
}

}  // namespace coco::cache
