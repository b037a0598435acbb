// SPDX-License-Identifier: BSD-3-Clause
//
// Ends with errno as it was when it began: for what a program does not ask for, such as the calls behind a
// free. Thread safety: each thread has its own errno. Fails: no.
#pragma once
#include <cerrno>

namespace coco::base {

class KeptErrno {
  public:
    KeptErrno() = default;
    ~KeptErrno() { errno = saved_; }
    KeptErrno(const KeptErrno&) = delete;
    KeptErrno& operator=(const KeptErrno&) = delete;

  private:
    const int saved_ = errno;
};

}  // namespace coco::base
