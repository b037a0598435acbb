// SPDX-License-Identifier: BSD-3-Clause
//
// In the place of lib/os/cpu.h: a pause is a look in vain (explorer.h).
#pragma once

namespace coco::os {
void pause();
}
