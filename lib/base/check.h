// SPDX-License-Identifier: BSD-3-Clause
//
// Checks of what code requires and promises. A check that fails is a bug of libcoco's: it ends the process
// with one line, and the launcher ends the job, since the other ranks would wait for ever, or get wrong
// bytes.
//   COCO_CHECK(condition, "what must hold")        cheap: a compare or two of what is at hand; in every build
//   COCO_CHECK_DEAR(condition, "what must hold")   anything dearer, or in the innermost loops; only in builds
//                                                  with -Dchecks=dear, such as those under the sanitizers
// Usable anywhere, below malloc too. The condition must have no side effect.
#pragma once

namespace coco::base {

[[noreturn, gnu::cold]] void fail_check(const char* what, const char* file, int line);

}  // namespace coco::base

#define COCO_CHECK(condition, what)                             \
    do {                                                        \
        if (!(condition)) [[unlikely]]                          \
            ::coco::base::fail_check(what, __FILE__, __LINE__); \
    } while (false)

#ifdef COCO_DEAR_CHECKS
#define COCO_CHECK_DEAR(condition, what) COCO_CHECK(condition, what)
#else
#define COCO_CHECK_DEAR(condition, what) static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif
