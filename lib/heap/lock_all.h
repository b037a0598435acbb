// SPDX-License-Identifier: BSD-3-Clause
//
// mlockall for a process whose address space holds sparse segments: to fill them, which the kernel would do,
// takes half of the memory for each rank. Called by the door of that name. Thread safety: any thread.
#pragma once

namespace coco::heap {

// As mlockall, but pages of segments are locked when they are touched. Returns: 0, or -1 and errno.
int lock_all(int flags);
// Whether the program has asked for later mappings to be locked (MCL_FUTURE).
bool locks_later_pages();

}  // namespace coco::heap
