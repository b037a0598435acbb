// SPDX-License-Identifier: BSD-3-Clause
//
// While one lives, a write of this thread that the system refuses, for a limit on the size of files or a pipe
// without a reader, fails with its errno and sends no signal: what libcoco writes is not worth a program's
// end.
//
// Called by all that writes files and lines. Thread safety: any thread, each by itself. Signals that were
// pending before stay so. Fails: no.
#pragma once
#include <csignal>

namespace coco::base {

class HeldWriteSignals {
  public:
    HeldWriteSignals();
    ~HeldWriteSignals();
    HeldWriteSignals(const HeldWriteSignals&) = delete;
    HeldWriteSignals& operator=(const HeldWriteSignals&) = delete;

  private:
    sigset_t mask_{}, pending_{};  // as they were
};

}  // namespace coco::base
