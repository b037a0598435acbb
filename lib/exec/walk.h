// SPDX-License-Identifier: BSD-3-Clause
//
// The one loop that walks a schedule. A View says where places are in this call and what arriving means; the
// loop knows neither algorithms nor sizes.
#pragma once
#include "comm/comm.h"
#include "exec/delay.h"
#include "schedule/schedule.h"

namespace coco::exec {

template <class View>
void walk(const schedule::Schedule& schedule, View& view) {
    using schedule::Act;
    for (const schedule::Step& step : schedule.steps) {
        if (step.act == Act::copy) {
            view.copy(step);
            continue;
        }
        delay_if_asked();
        if (step.act == Act::wait)
            view.wait(step.source_owner, step.milestone);
        else
            view.raise(step.milestone);
    }
}

}  // namespace coco::exec
