// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks of a communicator agree on what learning has measured: by the MPI library's own allreduce on it, which all
// ranks call in the same call of ours. Called by entry.cc. Thread safety: that of the communicator. Fails: as the MPI library
// does.
#pragma once
#include "choose/choices.h"
#include "mpi/handles.h"

namespace coco::dispatch {

class BoardAgreement final : public choose::Agreement {
  public:
    // last_ns: how long this rank was in the communicator's last one.
    BoardAgreement(mpi::Comm comm, std::int64_t& last_ns) : comm_(comm), last_ns_(last_ns) {}
    // The last number becomes how long the rank that came last took the last time: others waited for it.
    bool agree(std::span<std::int64_t> numbers) override;
    bool was_asked() const { return was_asked_; }

  private:
    bool was_asked_ = false;
    const mpi::Comm comm_;
    std::int64_t& last_ns_;
};

}  // namespace coco::dispatch
