// SPDX-License-Identifier: BSD-3-Clause
//
// What a process has of the machine, as /proc tells: for tests that it does not grow.
#pragma once
#include <dirent.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <string>

namespace test {

// Without pages of files, which are shared with jobs that run meanwhile.
inline long proportional_kib() {
    long total = 0, part = 0;
    char line[256];
    FILE* file = std::fopen("/proc/self/smaps_rollup", "r");
    while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr)
        if (std::sscanf(line, "Pss_Anon: %ld", &part) == 1 || std::sscanf(line, "Pss_Shmem: %ld", &part) == 1)
            total += part;
    if (file != nullptr) std::fclose(file);
    return total;
}

inline int entries_of(const char* folder) {
    int entries = 0;
    DIR* dir = opendir(folder);
    while (dir != nullptr && readdir(dir) != nullptr) ++entries;
    if (dir != nullptr) closedir(dir);
    return entries;
}

// Calls `take` with each line of /proc/self/maps.
template <class Take>
void for_each_mapping(Take take) {
    char line[4096 + 256];
    FILE* file = std::fopen("/proc/self/maps", "r");
    while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) take(line);
    if (file != nullptr) std::fclose(file);
}

struct Footprint {
    long kib = proportional_kib();
    int descriptors = entries_of("/proc/self/fd");
    int mappings = 0, segments = 0;  // segments: shared heaps of ranks, this one's too

    Footprint() {
        std::set<std::string> inodes;
        for_each_mapping([&](const char* line) {
            ++mappings;
            char inode[32] = "";
            if (std::strstr(line, "coco") != nullptr &&
                std::sscanf(line, "%*s %*s %*s %*s %31s", inode) == 1 &&
                std::strstr(line, "(deleted)") != nullptr)
                inodes.insert(inode);
        });
        segments = static_cast<int>(inodes.size());
    }
};

}  // namespace test
