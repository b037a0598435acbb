// SPDX-License-Identifier: BSD-3-Clause
// A debugger, or a core dump, reads all memory that is not left out of dumps. That fills no large hole of the
// heap.
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "expect.h"

namespace {

constexpr std::size_t kMiB = 1u << 20;

// What the heap has in memory.
std::size_t heap_bytes() {
    struct stat facts {};
    for (int fd = 3; fd < 1024; ++fd) {
        char name[64] = {}, path[32];
        std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, name, sizeof name - 1) > 0 && std::strstr(name, "coco-heap") != nullptr &&
            fstat(fd, &facts) == 0)
            return static_cast<std::size_t>(facts.st_blocks) * 512;
    }
    EXPECT(!"there is a heap");
    return 0;
}

struct Range {
    std::size_t begin, end;
};

// The heap's mappings without "dd", as gdb takes them from the kernel's list.
std::vector<Range> dumped_ranges() {
    std::vector<Range> ranges;
    std::FILE* list = std::fopen("/proc/self/smaps", "r");
    Range range{}, read{};
    bool is_heaps = false;
    for (char line[512]; std::fgets(line, sizeof line, list) != nullptr;) {
        if (std::sscanf(line, "%zx-%zx ", &read.begin, &read.end) == 2) {
            range = read;
            is_heaps = std::strstr(line, "coco-heap") != nullptr;
        }
        if (std::strncmp(line, "VmFlags:", 8) == 0 && is_heaps && std::strstr(line, " dd") == nullptr)
            ranges.push_back(range);
    }
    std::fclose(list);
    return ranges;
}

void read_as_debugger() {
    const int memory = open("/proc/self/mem", O_RDONLY);
    static char piece[kMiB];
    for (const Range& range : dumped_ranges())
        for (std::size_t at = range.begin; at < range.end; at += sizeof piece)
            EXPECT(pread(memory, piece, std::min(sizeof piece, range.end - at), static_cast<off_t>(at)) > 0);
    close(memory);
}

// Of 300 MiB in blocks those from 50 to 250 are freed.
void make_hole() {
    std::vector<void*> blocks(3000);
    for (void*& block : blocks) block = std::memset(std::malloc(100'000), 1, 100'000);
    for (std::size_t i = 500; i < 2500; ++i) std::free(blocks[i]);
    malloc_trim(0);
}

// Blocks that grow have room to grow on.
void grow_block() {
    void* block = nullptr;
    for (std::size_t i = 1; i <= 100; ++i) {
        block = std::realloc(block, i * kMiB);
        std::memset(static_cast<char*>(block) + (i - 1) * kMiB, 1, kMiB);
    }
}

}  // namespace

int main() {
    make_hole();
    grow_block();
    const std::size_t before = heap_bytes();
    read_as_debugger();
    EXPECT(before > 50 * kMiB);
    EXPECT(heap_bytes() < before + before / 2 + 16 * kMiB);
    return failures();
}
