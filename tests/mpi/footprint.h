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

// A field of /proc/self/smaps_rollup, in KiB.
inline long rolled_up_kib(const char* field) {
    long kib = 0;
    char line[256];
    const std::size_t length = std::strlen(field);
    FILE* file = std::fopen("/proc/self/smaps_rollup", "r");
    while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr)
        if (std::strncmp(line, field, length) == 0 && line[length] == ':')
            std::sscanf(line + length + 1, "%ld", &kib);
    if (file != nullptr) std::fclose(file);
    return kib;
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
    // Without pages of files, which are shared with jobs that run meanwhile; a shared page counts in parts.
    long own_kib = rolled_up_kib("Pss_Anon"), shared_kib = rolled_up_kib("Pss_Shmem");
    long kib = own_kib + shared_kib;
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
