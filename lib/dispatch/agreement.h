// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks of a communicator agree on what learning has measured: by the MPI library's own allreduce on
// it, which all ranks call in the same call of ours. Called by entry.cc. Thread safety: that of the
// communicator. Fails: as the MPI library does.
#pragma once
#include "choose/choices.h"
#include "comm/comm.h"
#include "comm/told.h"
#include "os/clock.h"

namespace coco::dispatch {

class BoardAgreement final : public choose::Agreement {
  public:
    explicit BoardAgreement(comm::Comm& comm) : comm_(comm) {}
    // The last number becomes how long the rank that came last took the last time: others waited for it.
    bool agree(std::span<std::int64_t> numbers) override;
    std::int64_t now_ns() override { return static_cast<std::int64_t>(os::now_ns()); }
    std::span<const std::int64_t> told() override { return comm::told_by_first_rank(comm_); }
    bool was_asked() const { return was_asked_; }

  private:
    bool was_asked_ = false;
    comm::Comm& comm_;
};

}  // namespace coco::dispatch
