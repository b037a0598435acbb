// SPDX-License-Identifier: BSD-3-Clause
// Big blocks that are freed go back to the system: footprint LIMIT_MB. And past COCO_HEAP_LIMIT, or with a
// small address space, allocation goes on: footprint LIMIT_MB private.
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "expect.h"

namespace {

std::size_t resident_bytes() {
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    std::size_t all = 0, resident = 0;
    EXPECT(std::fscanf(file, "%zu %zu", &all, &resident) == 2);
    std::fclose(file);
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

constexpr std::size_t kBlock = 64u << 20;

void check_given_back(std::size_t limit) {
    for (int i = 0; i < 8; ++i) {
        char* block = static_cast<char*>(malloc(kBlock + static_cast<std::size_t>(i) * 5000000));
        const char* heap = std::getenv("COCO_HEAP");
        EXPECT(lies_on_shared_heap(block) == (heap != nullptr && std::strcmp(heap, "shared") == 0));
        std::memset(block, 1, kBlock);
        free(block);
    }
    EXPECT(resident_bytes() < limit);
    auto* zeroed = static_cast<char*>(calloc(kBlock, 1));
    for (std::size_t i = 0; i < kBlock; i += 4096) EXPECT(zeroed[i] == 0);
    free(zeroed);
}

void check_overflow() {
    constexpr int kBlocks = 800;
    constexpr std::size_t kBytes = 256u << 10;
    std::vector<char*> blocks;
    int shared = 0;
    for (int i = 0; i < kBlocks; ++i) {
        blocks.push_back(static_cast<char*>(malloc(kBytes)));
        std::memset(blocks.back(), i, kBytes);
        shared += lies_on_shared_heap(blocks.back());
    }
    EXPECT(shared < kBlocks);
    for (int i = 0; i < kBlocks; ++i)
        EXPECT(blocks[static_cast<std::size_t>(i)][kBytes - 1] == static_cast<char>(i));
    for (char* block : blocks) free(block);
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) return 2;
    if (count == 3)
        check_overflow();
    else
        check_given_back(static_cast<std::size_t>(std::atoi(arguments[1])) << 20);
    return failures();
}
