// SPDX-License-Identifier: BSD-3-Clause
#include "heap/other_allocators.h"

#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/log.h"

extern "C" {
void* malloc(std::size_t bytes) noexcept;
// Made by the linker: the first byte in memory of the object that this is linked into.
extern const ElfW(Ehdr) coco_object __asm__("__ehdr_start") __attribute__((visibility("hidden")));
}

namespace coco::heap {
namespace {

// Whether the malloc that the program calls lies in the object that this is linked into.
bool malloc_is_ours() {
    auto base = reinterpret_cast<std::uintptr_t>(&coco_object);
    auto* headers = reinterpret_cast<const ElfW(Phdr)*>(base + coco_object.e_phoff);
    std::uintptr_t bytes = 0;
    for (int i = 0; i < coco_object.e_phnum; ++i)
        if (headers[i].p_type == PT_LOAD) bytes = std::max(bytes, headers[i].p_vaddr + headers[i].p_memsz);
    return reinterpret_cast<std::uintptr_t>(&malloc) - base < bytes;
}

}  // namespace

void report_other_allocators() {
    if (!malloc_is_ours()) COCO_LOG(info, "another allocator serves malloc: its buffers are private");
}

}  // namespace coco::heap
