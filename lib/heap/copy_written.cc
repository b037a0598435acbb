// SPDX-License-Identifier: BSD-3-Clause
#include "heap/copy_written.h"

#include <sys/mman.h>

#include <cstring>

#include "base/bits.h"
#include "base/kernel.h"
#include "os/shared_memory.h"

namespace coco::heap {
namespace {

bool read_all(int fd, std::uint64_t offset, std::uint64_t bytes, std::byte* target) {
    while (bytes != 0) {
        const ssize_t n = kernel::pread(fd, target, bytes, offset);
        if (n <= 0) return false;
        offset += static_cast<std::uint64_t>(n);
        target += n;
        bytes -= static_cast<std::uint64_t>(n);
    }
    return true;
}

// The kernel puts off what it cannot do; where it refuses, pages stay small.
void ask_for_huge_pages(std::byte* target, std::uint64_t bytes) {
    constexpr std::uint64_t kHuge = 2u << 20, kWorthIt = 4 * kHuge;
    const auto first = reinterpret_cast<std::uint64_t>(target);
    const std::uint64_t begin = base::round_up(first, kHuge), end = (first + bytes) / kHuge * kHuge;
    if (begin + kWorthIt > end) return;
    static_cast<void>(kernel::madvise(target + (begin - first), end - begin, MADV_HUGEPAGE));
}

}  // namespace

// From the file where possible: mapped pages may be out of reach, as the program may have forbidden access to some
// (mprotect), or kept them from its children (MADV_DONTFORK, as InfiniBand's library does).
bool copy_written(os::Written& written, std::uint64_t offset, std::uint64_t bytes, const std::byte* mapped,
                  std::byte* target, bool asks_for_huge) {
    const int fd = written.fd();
    if (fd < 0) {
        std::memcpy(target, mapped, bytes);
        return true;
    }
    const std::uint64_t end = offset + bytes;
    for (std::uint64_t at = offset; at < end;) {
        const auto [from, stop] = written.next(at, end);
        at = stop;
        if (from == stop) break;
        if (asks_for_huge) ask_for_huge_pages(target + (from - offset), stop - from);
        if (!read_all(fd, from, stop - from, target + (from - offset))) return false;
    }
    return true;
}

}  // namespace coco::heap
