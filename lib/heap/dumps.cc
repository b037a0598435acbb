// SPDX-License-Identifier: BSD-3-Clause
#include "heap/dumps.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>

#include "base/kernel.h"
#include "base/lock.h"
#include "heap/segment.h"
#include "os/cpu.h"
#include "os/shared_memory.h"

namespace coco::heap {
namespace {

constexpr std::uint64_t kPart = os::kHugePageBytes;

constinit std::byte* g_base = nullptr;
constinit std::uint64_t g_parts = 0;
constinit std::uint16_t* g_pages = nullptr;  // by part, how many are in use. Guarded by the lock.
constinit base::Lock g_lock;

void advise(std::uint64_t begin, std::uint64_t end, int advice) {
    if (begin != end) kernel::madvise(g_base + begin * kPart, (end - begin) * kPart, advice);
}

// Changes the number of pages in use of each part of a range by `change`, which tells the new number of the old one and of
// the range's pages in the part. Parts that become used or unused by that are advised run by run.
template <class Change>
void count(std::uint64_t begin, std::uint64_t end, int advice, Change change) {
    const std::scoped_lock hold(g_lock);
    std::uint64_t run = 0, run_end = 0;
    while (begin < end) {
        const std::uint64_t part = begin / kPart, stop = std::min(end, (part + 1) * kPart);
        const bool was_used = g_pages[part] != 0;
        g_pages[part] = static_cast<std::uint16_t>(change(g_pages[part], (stop - begin) / os::page_bytes()));
        if (was_used != (g_pages[part] != 0)) {
            if (part != run_end) {
                advise(run, run_end, advice);
                run = part;
            }
            run_end = part + 1;
        }
        begin = stop;
    }
    advise(run, run_end, advice);
}

bool is_heap(std::uint64_t offset, std::uint64_t bytes) {
    return own().bytes != 0 && offset < g_parts * kPart && bytes <= g_parts * kPart - offset;
}

std::uint64_t offset_in_heap(const void* address) {
    return reinterpret_cast<std::uint64_t>(address) - reinterpret_cast<std::uint64_t>(g_base);
}

}  // namespace

bool begin_dumps(std::byte* base, std::uint64_t bytes) {
    const std::uint64_t parts = bytes / kPart;
    void* table = kernel::mmap(nullptr, parts * sizeof *g_pages, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED) return false;
    g_pages = static_cast<std::uint16_t*>(table);
    g_base = base;
    g_parts = parts;
    return true;
}

void put_into_dumps(const void* address, std::uint64_t bytes) {
    const std::uint64_t offset = offset_in_heap(address);
    if (!is_heap(offset, bytes)) return;
    count(offset, offset + bytes, MADV_DODUMP, [](std::uint64_t used, std::uint64_t pages) {
        return std::min(used + pages, kPart / os::page_bytes());
    });
}

void leave_out_of_dumps(const void* address, std::uint64_t bytes) {
    const std::uint64_t offset = offset_in_heap(address);
    if (!is_heap(offset, bytes)) return;
    count(offset, offset + bytes, MADV_DONTDUMP,
          [](std::uint64_t used, std::uint64_t pages) { return used - std::min(used, pages); });
}

}  // namespace coco::heap
