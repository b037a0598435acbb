// SPDX-License-Identifier: BSD-3-Clause
//
// Log lines by write(2) on stderr, "coco[RANK]: warn: ...". Usable before main, below malloc, in signal
// handlers and from any thread: one write per line. The level comes from COCO_LOG, default warn.
#pragma once
#include "base/text.h"

namespace coco::base {

enum class LogLevel { error, warn, info, debug };

// Sets the rank shown in front of each line; -1 (the default) shows the process id.
void set_log_rank(int rank);
LogLevel log_level();
// Writes the line if `level` is on.
void log(LogLevel level, const Text& line);
// Writes the last line before a process's end, at level error. It waits 0.1 s then, as a launcher may drop
// what was printed just before a job is killed: once in some fifty runs of MPICH's.
void log_last(const Text& line);
// Writes the line without prefix or level, for reports.
void write_line(const Text& line);

}  // namespace coco::base

// Builds the text only when the level is on: COCO_LOG(warn, "heap limit " << bytes << " reached").
#define COCO_LOG(level, stream)                                                               \
    do {                                                                                      \
        if (::coco::base::LogLevel::level <= ::coco::base::log_level())                       \
            ::coco::base::log(::coco::base::LogLevel::level, ::coco::base::Text() << stream); \
    } while (false)
