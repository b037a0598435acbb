// SPDX-License-Identifier: BSD-3-Clause
#include "heap/heap.h"
#include "heap/segment.h"
#include "heap/spans.h"
#include "os/shared_memory.h"

// The private jemalloc. Declared hidden here, which makes them hidden in whatever this is linked into.
#pragma GCC visibility push(hidden)
extern "C" {
void* coco_je_malloc(std::size_t bytes);
void* coco_je_calloc(std::size_t count, std::size_t bytes_each);
void* coco_je_realloc(void* block, std::size_t bytes);
void coco_je_free(void* block);
void* coco_je_memalign(std::size_t alignment, std::size_t bytes);
std::size_t coco_je_malloc_usable_size(const void* block);
}
#pragma GCC visibility pop

namespace coco::heap {

void wake() { own(); }

void* allocate(std::size_t bytes) { return coco_je_malloc(bytes); }
void* allocate_zeroed(std::size_t count, std::size_t bytes_each) { return coco_je_calloc(count, bytes_each); }
void* allocate_aligned(std::size_t alignment, std::size_t bytes) {
    return coco_je_memalign(alignment, bytes);
}
void* reallocate(void* block, std::size_t bytes) { return coco_je_realloc(block, bytes); }
void release(void* block) { coco_je_free(block); }
std::size_t usable_bytes(const void* block) { return coco_je_malloc_usable_size(block); }

HeapFigures figures() {
    HeapFigures figures{};
    figures.limit_bytes = own().bytes > kFirstSpan ? own().bytes - kFirstSpan : 0;
    fill_span_figures(figures);
    figures.huge_pages = own().bytes != 0 && os::huge_pages_granted();
    return figures;
}

}  // namespace coco::heap
