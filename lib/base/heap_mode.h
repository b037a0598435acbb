// SPDX-License-Identifier: BSD-3-Clause
//
// COCO_HEAP: how much of malloc is on the shared heap. Thread safety: constants.
#pragma once
#include <string_view>

namespace coco::base {

enum class HeapMode {
    adaptive,  // large blocks are private (heap/arenas.h)
    shared,    // all blocks are on the segment from birth
    off        // the program's own malloc stays as it is
};

// Returns: false if the word is none of the three.
constexpr bool parse_heap_mode(std::string_view word, HeapMode& mode) {
    constexpr std::string_view kWords[] = {"adaptive", "shared", "off"};
    for (int i = 0; i < 3; ++i)
        if (word == kWords[i]) {
            mode = static_cast<HeapMode>(i);
            return true;
        }
    return false;
}

}  // namespace coco::base
