// SPDX-License-Identifier: BSD-3-Clause
// A program that bounds itself once it runs is bounded as it would be without libcoco, and no more.
#include <malloc.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>

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

}  // namespace

int main() {
    const rlimit no_files{0, RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_FSIZE, &no_files) == 0);
    use_memory();
    return failures();
}
