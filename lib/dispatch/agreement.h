// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks of a communicator agree on what learning has measured: by the MPI library's own allreduce on it, which all
// ranks call in the same call of ours. Called by entry.cc. Thread safety: that of the communicator. Fails: as the MPI library
// does.
#pragma once
#include <atomic>

#include "choose/choices.h"
#include "mpi/handles.h"

namespace coco::dispatch {

class BoardAgreement final : public choose::Agreement {
  public:
    explicit BoardAgreement(mpi::Comm comm) : comm_(comm) {}
    // The last number becomes how long it took the slowest rank to agree the last time.
    void agree(std::span<std::int64_t> numbers) override;

  private:
    const mpi::Comm comm_;
};

}  // namespace coco::dispatch
