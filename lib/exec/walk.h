// SPDX-License-Identifier: BSD-3-Clause
//
// The one loop that walks a schedule. A View says where places are in this call and what arriving means; the
// loop knows neither algorithms nor sizes. What a View has, besides wait(rank, milestone) and
// raise(milestone):
//   kRows false: copy(source place, target place)
//                and, if it has that, copy_run(source place, target place, blocks) for several in a row
//   kRows true:  all blocks have one size; row(area, owner), where those of all owners lie behind one another
//                and wait() may fill them in; copy(target address, source address)
// for schedules with messages send(to, first place, blocks), receive(from, first place, blocks),
// complete(left); and, if it has that, open_for(copy step), before the step.
#pragma once
#include "blocks/store.h"
#include "exec/delay.h"
#include "schedule/schedule.h"

namespace coco::exec {

template <class View>
[[gnu::always_inline]] inline void await(std::int32_t rank, schedule::Milestone milestone, View& view) {
    delay_if_asked();
    view.wait(rank, milestone);
}

template <class View>
[[gnu::always_inline]] inline void copy_places(const schedule::Step& step, View& view) {
    if constexpr (requires { view.copy_run(step.source(0), step.target(0), 1); })
        if (!step.along_owners) {
            if (step.after_source) await(step.source_owner, schedule::kArrived, view);
            return view.copy_run(step.source(0), step.target(0), step.count);
        }
    for (std::int32_t i = 0; i < step.count; ++i) {
        if (step.after_source) await(step.source(i).owner, schedule::kArrived, view);
        view.copy(step.source(i), step.target(i));
    }
}

// The same with addresses, which only go up. Inlined, a loop for each kind: as calls, or as one loop with
// questions, a walk costs up to a third more at 64 B.
template <class View>
[[gnu::always_inline]] inline void copy_rows(const schedule::Step& step, View& view) {
    const blocks::Row to = view.row(step.target_area, step.target_owner);
    const blocks::Row* from = &view.row(step.source_area, step.source_owner);
    std::byte* target = to.base + step.target_index * to.stride_bytes;
    const std::int64_t index = step.source_index;
    std::int32_t left = step.count;
    if (!step.along_owners) {
        if (step.after_source) await(step.source_owner, schedule::kArrived, view);
        const std::int64_t stride_bytes = from->stride_bytes;
        const std::byte* source = from->base + index * stride_bytes;
        for (; left != 0; --left, target += to.stride_bytes, source += stride_bytes)
            view.copy(target, source);
    } else if (!step.after_source) {
        for (; left != 0; --left, target += to.stride_bytes, ++from)
            view.copy(target, from->base + index * from->stride_bytes);
    } else {
        for (std::int32_t owner = step.source_owner; left != 0; --left, target += to.stride_bytes, ++from) {
            await(owner++, schedule::kArrived, view);
            view.copy(target, from->base + index * from->stride_bytes);
        }
    }
}

template <class View>
[[gnu::always_inline]] inline void copy_step(const schedule::Step& step, View& view) {
    if constexpr (requires { view.open_for(step); }) view.open_for(step);
    if (step.after_target) await(step.target_owner, schedule::kArrived, view);
    if constexpr (View::kRows)
        copy_rows(step, view);
    else
        copy_places(step, view);
}

// Takes a step that sends, receives or completes messages.
template <class View>
void pass_step(const schedule::Step& step, View& view) {
    using schedule::Act;
    if (step.act == Act::send)
        view.send(step.peer(), step.first(step.source_owner), step.count);
    else if (step.act == Act::receive)
        view.receive(step.peer(), step.first(step.target_owner), step.count);
    else
        view.complete(step.count);
}

template <class View>
[[gnu::always_inline]] inline void take_step(const schedule::Step& step, View& view) {
    using schedule::Act;
    if (step.act == Act::copy) [[likely]]
        return copy_step(step, view);
    if (step.act == Act::wait) {
        for (std::int32_t i = 0; i < step.count; ++i) await(step.awaited(i), step.milestone, view);
        return;
    }
    delay_if_asked();
    if (step.act == Act::raise) return view.raise(step.milestone);
    if constexpr (requires { view.complete(0); }) pass_step(step, view);
}

// Walks a schedule from its begin to its end. Inlined: a flight that lives in its runner's frame is then kept
// in registers.
template <class View>
[[gnu::always_inline]] inline void walk(const schedule::Schedule& schedule, View& view) {
    for (const schedule::Step& step : schedule.steps) take_step(step, view);
}

}  // namespace coco::exec
