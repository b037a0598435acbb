// SPDX-License-Identifier: BSD-3-Clause
// A program that locks its memory does not fill the heap, and what it frees still goes back.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "expect.h"

namespace {

// Kilobytes of a field of /proc/self/status.
long status(const char* field) {
    std::FILE* file = std::fopen("/proc/self/status", "r");
    char line[256];
    long value = -1;
    while (std::fgets(line, sizeof line, file) != nullptr)
        if (std::strncmp(line, field, std::strlen(field)) == 0) value = std::atol(line + std::strlen(field));
    std::fclose(file);
    return value;
}

constexpr std::size_t kBytes = 64u << 20;
char g_untouched[4 << 20];

}  // namespace

int main() {
    char* block = static_cast<char*>(malloc(kBytes));
    std::memset(block, 1, kBytes);
    long before = status("VmRSS:");
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return 77;  // not allowed here
    EXPECT(status("VmRSS:") - before < 100 << 10);
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t pages = sizeof g_untouched / page - 1;
    std::vector<unsigned char> present(pages);
    auto* first =
        reinterpret_cast<char*>((reinterpret_cast<std::size_t>(g_untouched) + page - 1) & ~(page - 1));
    EXPECT(mincore(first, pages * page, present.data()) == 0);
    EXPECT((present.front() & 1) != 0 && (present.back() & 1) != 0);  // others are filled, as ever
    free(block);
    EXPECT(status("VmRSS:") - before < 50 << 10);
    auto* zeroed = static_cast<char*>(calloc(kBytes, 1));
    std::size_t others = 0;
    for (std::size_t i = 0; i < kBytes; ++i) others += zeroed[i] != 0;
    EXPECT(others == 0);
    free(zeroed);
    EXPECT(munlockall() == 0);
    return failures();
}
