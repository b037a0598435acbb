// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a thread is inside one of our doors. Thread safety: each thread has its own count.
#pragma once

namespace coco::dispatch {

// Not 0: this thread is inside one of our doors. A call that comes in now is passed on: it was seen already,
// or is our own.
extern constinit thread_local int t_inside;

struct Inside {
    Inside() { ++t_inside; }
    ~Inside() { --t_inside; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
};

}  // namespace coco::dispatch
