// SPDX-License-Identifier: BSD-3-Clause
// A program that bounds itself once it runs is bounded as it would be without libcoco, and no more.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <thread>
#include <vector>

#include "expect.h"

namespace {

void use_memory() {
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{100'000}, std::size_t{64} << 20}) {
        char* block = static_cast<char*>(std::malloc(bytes));
        EXPECT(block != nullptr && std::memset(block, 1, bytes) == block);
        std::free(block);
    }
    malloc_trim(0);
}

// Threads, mappings and forked children go on under a limit that is set now; the heap keeps to it, too.
void bound_address_space() {
    constexpr std::size_t kGiB = std::size_t{1} << 30;
    rlimit before{};
    EXPECT(getrlimit(RLIMIT_AS, &before) == 0);
    const rlimit bounded{4 * kGiB, before.rlim_max};
    EXPECT(setrlimit(RLIMIT_AS, &bounded) == 0);
    std::thread([] { use_memory(); }).join();
    void* mapped =
        mmap(nullptr, kGiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT(mapped != MAP_FAILED);
    std::vector<std::vector<char>> blocks(10'000, std::vector<char>(100'000, 'b'));  // 1 GB
    const pid_t child = fork();
    if (child == 0) {
        use_memory();
        _exit(blocks.front()[99'999] == 'b' && blocks.back()[0] == 'b' ? 0 : 1);
    }
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    munmap(mapped, kGiB);
    std::vector<void*> more;
    while (void* block = std::malloc(100u << 20)) more.push_back(block);
    EXPECT(more.size() > 10 && more.size() < 40);
    for (void* block : more) std::free(block);
    EXPECT(setrlimit(RLIMIT_AS, &before) == 0);
}

}  // namespace

int main() {
    bound_address_space();
    const rlimit no_files{0, RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_FSIZE, &no_files) == 0);
    use_memory();
    return failures();
}
