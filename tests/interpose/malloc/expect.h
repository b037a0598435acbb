// SPDX-License-Identifier: BSD-3-Clause
//
// The checks of the situation programs: they run preloaded and must not bring a test framework's
// allocations.
#pragma once
#include <cinttypes>
#include <cstdio>
#include <cstring>

inline int& failures() {
    static int count = 0;
    return count;
}

#define EXPECT(condition)                                                                \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            ++failures();                                                                \
        }                                                                                \
    } while (false)

// Whether the page of `address` lies in a shared mapping of a memory object of ours, as the kernel tells.
inline bool lies_on_shared_heap(const void* address) {
    std::FILE* maps = std::fopen("/proc/self/maps", "r");
    char line[512];
    bool found = false;
    while (std::fgets(line, sizeof line, maps) != nullptr) {
        std::uintptr_t begin = 0, end = 0;
        char modes[8];
        if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &begin, &end, modes) != 3) continue;
        auto at = reinterpret_cast<std::uintptr_t>(address);
        if (begin <= at && at < end) found = modes[3] == 's' && (std::strstr(line, "coco-") != nullptr);
    }
    std::fclose(maps);
    return found;
}
