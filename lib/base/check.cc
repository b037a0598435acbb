// SPDX-License-Identifier: BSD-3-Clause
#include "base/check.h"

#include <cstdlib>
#include <cstring>

#include "base/log.h"

namespace coco::base {

void fail_check(const char* what, const char* file, int line) {
    const char* name = std::strrchr(file, '/');
    log(LogLevel::error, Text() << "libcoco is broken, please report it: not true: " << what << " ("
                                << (name != nullptr ? name + 1 : file) << ":" << line
                                << "); COCO_DISABLE=1 switches libcoco off");
    std::abort();
}

}  // namespace coco::base
