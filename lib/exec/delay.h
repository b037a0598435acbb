// SPDX-License-Identifier: BSD-3-Clause
//
// Random delays between the steps of a call, for tests of what happens when ranks run apart
// (COCO_TEST_DELAY).
#pragma once
#include <cstdint>

namespace coco::exec {

extern std::uint64_t g_delay_us;  // 0: none
void delay();
inline void delay_if_asked() {
    if (g_delay_us != 0) [[unlikely]]
        delay();
}

}  // namespace coco::exec
