// SPDX-License-Identifier: BSD-3-Clause
//
// A program's own mmap, munmap, mremap, mprotect, madvise and shmat on malloc's memory: they do the same as
// to private memory, as far as the program can tell. Pages over which it maps something are noted as no
// longer shared (overlays.h). Calls that touch no address of the segment go straight on, after a comparison.
// Called by the doors of these names (interpose/mapping.cc). Thread safety: any thread, and signal handlers:
// no lock, no malloc. Fails: as the functions do.
#pragma once
#include <sys/types.h>

#include <cstddef>

#include "os/next_calls.h"

namespace coco::heap {

// next: the functions below the doors.
void* program_mmap(const os::MappingCalls& next, void* address, std::size_t bytes, int protection, int flags,
                   int fd, off_t offset);
int program_munmap(const os::MappingCalls& next, void* address, std::size_t bytes);
void* program_mremap(const os::MappingCalls& next, void* address, std::size_t bytes, std::size_t new_bytes,
                     int flags, void* wanted);
int program_mprotect(const os::MappingCalls& next, void* address, std::size_t bytes, int protection);
int program_madvise(const os::MappingCalls& next, void* address, std::size_t bytes, int advice);
void* program_shmat(const os::MappingCalls& next, int id, const void* address, int flags);

}  // namespace coco::heap
