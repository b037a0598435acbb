// SPDX-License-Identifier: BSD-3-Clause
//
// Whether this heap really serves the program's malloc. A sanitizer's runtime before us, or within the
// program, brings its own malloc and works, with private buffers. A shared runtime after us cannot work,
// whatever the malloc: ASan refuses to start and says so, TSan crashes in its own start-up before any code of
// ours that could say it.
#pragma once

namespace coco::heap {

// Says at level info when another malloc is in use, so that buffers are private. Works before constructors.
void report_other_allocators();

}  // namespace coco::heap
