// SPDX-License-Identifier: BSD-3-Clause
//
// Tells on stderr how far `coco tune` is. Launchers take stderr through a pipe, so these are lines that stay,
// and few: one is told when it is time for it. Called by tune_session.cc on rank 0. Thread safety: one
// thread. Never fails.
#pragma once
#include <cstdint>
#include <string>

#include "tools/tune_report.h"

namespace coco::tools {

class Progress {
  public:
    // A line after so long, at most.
    explicit Progress(std::uint64_t every_ns) : every_ns_(every_ns) {}
    // How far it is behind this cell: cells that were measured, and that are left, each as often as it is
    // measured; the time that is left.
    void end_cell(const TunedCell& cell, std::size_t done, std::size_t left, std::uint64_t left_ns);
    // A line that is always told.
    void tell(const std::string& line);
    // The same for what is wrong.
    void fail(const std::string& line);

  private:
    std::uint64_t every_ns_, next_ns_ = 0;
};

}  // namespace coco::tools
