// SPDX-License-Identifier: BSD-3-Clause
//
// On a /dev/shm of 256 MiB: memory is freed, others fill what is left of the mount, and it is asked for
// again. What malloc gives then can be touched; it may be private, or there may be none.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t kBytes = 40 << 20;

// Returns: how much there was room for.
std::size_t fill_mount() {
    const int file = open("/dev/shm/others", O_CREAT | O_WRONLY, 0600);
    const std::vector<char> zeros(1 << 20);
    std::size_t filled = 0;
    for (ssize_t wrote = 0; (wrote = write(file, zeros.data(), zeros.size())) > 0;)
        filled += static_cast<std::size_t>(wrote);
    close(file);
    return filled;
}

}  // namespace

int main() {
    char* memory = static_cast<char*>(std::malloc(kBytes));
    if (memory == nullptr) return 2;
    std::memset(memory, 1, kBytes);
    std::free(memory);
    const std::size_t filled = fill_mount();
    memory = static_cast<char*>(std::malloc(kBytes));
    if (memory != nullptr) std::memset(memory, 2, kBytes);
    std::printf("the mount took %zu MiB more; %s\n", filled >> 20,
                memory != nullptr ? "touched" : "no memory");
    std::free(memory);
    return filled == 0;
}
