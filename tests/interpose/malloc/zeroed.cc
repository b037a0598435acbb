// SPDX-License-Identifier: BSD-3-Clause
//
// calloc gives zeros where a loop has left its pages with the heap and the program has then closed all
// descriptors and may open none, so that the kernel cannot be asked about mappings any more.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "expect.h"

int main() {
    constexpr std::size_t kBytes = 40 << 20;
    for (int round = 0; round < 6; ++round) {
        char* block = static_cast<char*>(std::malloc(kBytes));
        EXPECT(block != nullptr);
        std::memset(block, 0x77, kBytes);
        std::free(block);
    }
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    const rlimit none{3, 3};
    EXPECT(setrlimit(RLIMIT_NOFILE, &none) == 0);
    char* block = static_cast<char*>(std::calloc(1, kBytes));
    EXPECT(block != nullptr);
    EXPECT(std::count(block, block + kBytes, 0) == static_cast<std::ptrdiff_t>(kBytes));
    return failures();
}
