// SPDX-License-Identifier: BSD-3-Clause
#include "tools/tune_progress.h"

#include <algorithm>
#include <cstdio>

#include "base/env.h"
#include "os/clock.h"
#include "tools/tune_rules.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

std::string time_text(std::uint64_t ns) {
    const unsigned long long seconds = (ns + 500'000'000) / 1'000'000'000;
    char text[32];
    std::snprintf(text, sizeof text, "%llu:%02llu left", seconds / 60, seconds % 60);
    return text;
}

// "alltoall 4K warm"
std::string name_of(const TunedCell& cell) {
    return std::string(base::name_of(cell.collective)) + " " + base::bytes_text(cell.block_bytes) +
           (cell.is_cold ? " cold" : " warm");
}

// The fastest candidate, and the MPI library's own function.
std::string best_text(const TunedCell& cell) {
    const auto best = std::ranges::min_element(cell.candidates, {}, &Figure::median_ns);
    if (best == cell.candidates.end()) return "nothing";
    std::string text = policy::text_of(best->choice) + " " + us_text(best->median_ns) + " us";
    for (const Figure& figure : cell.candidates)
        if (figure.choice.algorithm == nullptr && best->choice.algorithm != nullptr)
            text += ", mpi " + us_text(figure.median_ns);
    return text;
}

}  // namespace

void Progress::end_cell(const TunedCell& cell, std::size_t done, std::size_t left, std::uint64_t left_ns) {
    const std::uint64_t now_ns = os::now_ns();
    if (now_ns < next_ns_) return;
    next_ns_ = now_ns + every_ns_;
    tell(std::to_string(done) + " of " + std::to_string(done + left) + " cells, " + time_text(left_ns) +
         "; " + name_of(cell) + ": " + best_text(cell));
}

void Progress::tell(const std::string& line) { std::fprintf(stderr, "coco tune: %s\n", line.c_str()); }

void Progress::fail(const std::string& line) { tell_error("tune: " + line); }

}  // namespace coco::tools
