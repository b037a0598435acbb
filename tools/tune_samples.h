// SPDX-License-Identifier: BSD-3-Clause
//
// Who stays in the comparison of a cell, and when it is decided: what `coco tune` concludes from the samples
// so far. A sample is the time of a call as the slowest rank saw it, the mean of a batch; all ranks have the
// same samples and conclude alike. A cell is measured in several passes, some time apart from one another, as
// a disturbance may last longer than all samples of a pass. Called by tune_measure.cc and tune_session.cc.
// Pure functions; never fail.
#pragma once
#include <span>
#include <vector>

#include "tools/tune_report.h"

namespace coco::tools {

// A candidate of a cell.
struct Contender {
    policy::Choice choice = {};
    double guess_ns = 0;                              // about what a call takes; 0: nobody knows yet
    bool is_out = false;                              // it was too slow to go on with in this pass
    std::vector<std::vector<double>> passes_ns = {};  // the samples of each pass

    bool has_samples() const;
};

// Makes room for the samples of one more pass, in which all are in.
void begin_pass(std::span<Contender> contenders);
// Each pass counts alike, however many samples it has. Requires: there are samples.
Figure figure_of(const Contender& contender);
// Takes those out of this pass that are clearly slower than the best one: half as long again in both of the
// first samples. A disturbance makes a sample longer, never shorter.
void drop_slow(std::span<Contender> contenders);
// Whether more samples of this pass would not change much: those that are in have narrow quartiles, or lie
// clearly apart from the best one.
bool is_settled(std::span<const Contender> contenders);

}  // namespace coco::tools
