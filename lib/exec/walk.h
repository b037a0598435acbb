// SPDX-License-Identifier: BSD-3-Clause
//
// The one loop that walks a schedule. A View says where places are in this call and what arriving means; the
// loop knows neither algorithms nor sizes.
#pragma once
#include "comm/comm.h"
#include "exec/delay.h"
#include "schedule/schedule.h"

namespace coco::exec {

template <bool delayed, class View>
void walk_steps(const schedule::Schedule& schedule, View& view) {
    using schedule::Act;
    for (const schedule::Step& step : schedule.steps) {
        if (step.act == Act::copy) {
            view.copy(step);
            continue;
        }
        if constexpr (delayed) delay();
        if (step.act == Act::wait)
            view.wait(step.source_owner, step.milestone);
        else
            view.raise(step.milestone);
    }
}

template <class View>
void walk(const schedule::Schedule& schedule, View& view) {
    if (g_delay_us != 0) [[unlikely]]
        walk_steps<true>(schedule, view);
    else
        walk_steps<false>(schedule, view);
}

}  // namespace coco::exec
