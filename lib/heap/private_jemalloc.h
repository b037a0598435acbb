// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of the private jemalloc (private_jemalloc.sh). Declared hidden here, they are hidden in
// whatever this is linked into. Called by this room's allocator. Thread safety and failures: as jemalloc's.
#pragma once
#include <jemalloc/jemalloc.h>

#include <cstddef>

#pragma GCC visibility push(hidden)
extern "C" {
void* coco_je_malloc(std::size_t bytes);
void* coco_je_calloc(std::size_t count, std::size_t bytes_each);
void* coco_je_realloc(void* block, std::size_t bytes);
void coco_je_free(void* block);
void* coco_je_memalign(std::size_t alignment, std::size_t bytes);
std::size_t coco_je_malloc_usable_size(const void* block);
void* coco_je_mallocx(std::size_t bytes, int flags);
void* coco_je_rallocx(void* block, std::size_t bytes, int flags);
std::size_t coco_je_xallocx(void* block, std::size_t bytes, std::size_t extra, int flags);
int coco_je_mallctl(const char* name, void* old, std::size_t* old_bytes, void* value,
                    std::size_t value_bytes);
}
#pragma GCC visibility pop
