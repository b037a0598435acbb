// SPDX-License-Identifier: BSD-3-Clause
//
// glibc's functions that tell of its malloc and tune it. They forward to the heap where the family is ours:
// glibc's own would tell of a malloc that nobody uses. It knows neither arenas nor mmapped blocks: all is
// told as of one arena.
#include <malloc.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>

#include "heap/heap.h"
#include "heap/malloc_family.h"

namespace heap = coco::heap;

#define COCO_DOOR extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kMostFast_bytes = 160;  // the largest M_MXFAST that glibc takes

template <class Info>
Info info_of(const heap::AllocatorFigures& figures) {
    Info info{};
    using Number = decltype(info.arena);
    info.arena = static_cast<Number>(figures.mapped_bytes);
    info.uordblks = static_cast<Number>(figures.allocated_bytes);
    info.fordblks = static_cast<Number>(figures.mapped_bytes - figures.allocated_bytes);
    info.ordblks = 1;
    info.keepcost = static_cast<Number>(figures.freed_bytes);
    return info;
}

}  // namespace

COCO_DOOR struct mallinfo2 mallinfo2() noexcept {
    if (!heap::malloc_family_is_ours()) return heap::others().mallinfo2();
    return info_of<struct mallinfo2>(heap::allocator_figures());
}

// Its numbers wrap, as glibc's do.
COCO_DOOR struct mallinfo mallinfo() noexcept {
    if (!heap::malloc_family_is_ours()) return heap::others().mallinfo();
    return info_of<struct mallinfo>(heap::allocator_figures());
}

COCO_DOOR void malloc_stats() noexcept {
    if (!heap::malloc_family_is_ours()) return heap::others().malloc_stats();
    heap::AllocatorFigures figures = heap::allocator_figures();
    std::fprintf(stderr,
                 "Total (incl. mmap):\nsystem bytes     = %10" PRIu64 "\nin use bytes     = %10" PRIu64 "\n",
                 figures.mapped_bytes, figures.allocated_bytes);
}

COCO_DOOR int malloc_info(int options, std::FILE* file) noexcept {
    if (!heap::malloc_family_is_ours()) return heap::others().malloc_info(options, file);
    if (options != 0) return EINVAL;
    heap::AllocatorFigures figures = heap::allocator_figures();
    std::uint64_t free_bytes = figures.mapped_bytes - figures.allocated_bytes;
    std::fprintf(
        file,
        "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n</sizes>\n<total type=\"fast\" count=\"0\" "
        "size=\"0\"/>\n"
        "<total type=\"rest\" count=\"1\" size=\"%" PRIu64 "\"/>\n<system type=\"current\" size=\"%" PRIu64
        "\"/>\n</heap>\n<total type=\"fast\" count=\"0\" size=\"0\"/>\n<total type=\"rest\" count=\"1\" "
        "size=\"%" PRIu64
        "\"/>\n<total type=\"mmap\" count=\"0\" size=\"0\"/>\n<system type=\"current\" size=\"%" PRIu64
        "\"/>\n</malloc>\n",
        free_bytes, figures.mapped_bytes, free_bytes, figures.mapped_bytes);
    return 0;
}

// How much to keep, the allocator decides itself: the padding is not asked for.
COCO_DOOR int malloc_trim(std::size_t pad_bytes) noexcept {
    return heap::malloc_family_is_ours() ? heap::trim() : heap::others().malloc_trim(pad_bytes);
}

// Our allocator has none of these screws; the answer is glibc's, which takes parameters that it does not
// know, too.
COCO_DOOR int mallopt(int parameter, int value) noexcept {
    if (!heap::malloc_family_is_ours()) return heap::others().mallopt(parameter, value);
    if (parameter == M_MXFAST) return value >= 0 && value <= kMostFast_bytes;
    return 1;
}
