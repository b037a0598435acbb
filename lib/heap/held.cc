// SPDX-License-Identifier: BSD-3-Clause
#include "heap/held.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace coco::heap {
namespace {

struct Held {
    std::uintptr_t begin;
    std::uint64_t bytes;
    std::uintptr_t holder;
};

struct Table {
    std::mutex mutex;
    std::vector<Held> ranges;
};

// Never destroyed: windows may be freed at the process's end.
Table& table() {
    static Table& made = *new Table;
    return made;
}

}  // namespace

void hold(const void* address, std::uint64_t bytes, std::uintptr_t holder) {
    Table& held = table();
    std::scoped_lock lock(held.mutex);
    held.ranges.push_back({reinterpret_cast<std::uintptr_t>(address), bytes, holder});
}

void let_go(std::uintptr_t holder, const void* address) {
    Table& held = table();
    std::scoped_lock lock(held.mutex);
    const auto at = std::ranges::find_if(held.ranges, [&](const Held& range) {
        return range.holder == holder && range.begin == reinterpret_cast<std::uintptr_t>(address);
    });
    if (at != held.ranges.end()) held.ranges.erase(at);
}

void let_go(std::uintptr_t holder) {
    Table& held = table();
    std::scoped_lock lock(held.mutex);
    std::erase_if(held.ranges, [&](const Held& range) { return range.holder == holder; });
}

void hand_over(std::uintptr_t from, std::uintptr_t to) {
    Table& held = table();
    std::scoped_lock lock(held.mutex);
    for (Held& range : held.ranges)
        if (range.holder == from) range.holder = to;
}

bool is_held(const void* address, std::uint64_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    Table& held = table();
    std::scoped_lock lock(held.mutex);
    return std::ranges::any_of(held.ranges, [&](const Held& range) {
        return begin < range.begin + range.bytes && range.begin < begin + bytes;
    });
}

}  // namespace coco::heap
