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
// complete(left); and, if it has that, open_for(copy step), before the step. wait, raise, complete and
// open_for return false where they would have to wait and the channel polls: then the walk returns, to go on
// there when it is called again. Those of views that never poll return nothing.
#pragma once
#include <type_traits>

#include "base/check.h"
#include "base/index.h"
#include "blocks/store.h"
#include "exec/delay.h"
#include "schedule/schedule.h"

namespace coco::exec {

// How far a walk has come.
struct Position {
    std::size_t step = 0;
    std::int32_t item = 0;  // how far in that step: blocks copied, or ranks waited for
};

// Calls `act`. Returns: its answer, whether it is done; a function without an answer is always done.
template <class Do>
[[gnu::always_inline]] inline bool done(Do&& act) {
    if constexpr (std::is_void_v<decltype(act())>) {
        act();
        return true;
    } else {
        return act();
    }
}

template <class View>
[[gnu::always_inline]] inline bool await(std::int32_t rank, schedule::Milestone milestone, View& view) {
    delay_if_asked();
    return done([&] { return view.wait(rank, milestone); });
}

// The functions below take a step up at block or rank `first`. Each returns kWhole where it came to the
// step's end, else the block or rank before which it has to wait.
inline constexpr std::int32_t kWhole = -1;

template <class View>
[[gnu::always_inline]] inline std::int32_t copy_places(const schedule::Step& step, View& view,
                                                       std::int32_t first) {
    if constexpr (requires { view.copy_run(step.source(0), step.target(0), 1); })
        if (!step.along_owners) {
            if (step.after_source && !await(step.source_owner, schedule::kArrived, view)) return 0;
            view.copy_run(step.source(0), step.target(0), step.count);
            return kWhole;
        }
    for (std::int32_t i = first; i < step.count; ++i) {
        if (step.after_source && !await(step.source(i).owner, schedule::kArrived, view)) return i;
        view.copy(step.source(i), step.target(i));
    }
    return kWhole;
}

// The same with addresses, which only go up. Inlined, a loop for each kind: as calls, or as one loop with
// questions, a walk costs up to a third more at 64 B.
template <class View>
[[gnu::always_inline]] inline std::int32_t copy_rows(const schedule::Step& step, View& view,
                                                     std::int32_t first) {
    const blocks::Row to = view.row(step.target_area, step.target_owner);
    const blocks::Row* from = &view.row(step.source_area, step.source_owner) + first;
    std::byte* target = to.base + (step.target_index + first) * to.stride_bytes;
    const std::int64_t index = step.source_index;
    std::int32_t left = step.count - first;
    if (!step.along_owners) {
        from -= first;  // one owner's, whose blocks are all copied at once
        if (step.after_source && !await(step.source_owner, schedule::kArrived, view)) return 0;
        const std::int64_t stride_bytes = from->stride_bytes;
        const std::byte* source = from->base + index * stride_bytes;
        for (; left != 0; --left, target += to.stride_bytes, source += stride_bytes)
            view.copy(target, source);
    } else if (!step.after_source) {
        for (; left != 0; --left, target += to.stride_bytes, ++from)
            view.copy(target, from->base + index * from->stride_bytes);
    } else {
        for (std::int32_t owner = step.source_owner + first; left != 0;
             --left, target += to.stride_bytes, ++from) {
            if (!await(owner++, schedule::kArrived, view)) [[unlikely]]
                return step.count - left;
            view.copy(target, from->base + index * from->stride_bytes);
        }
    }
    return kWhole;
}

template <class View>
[[gnu::always_inline]] inline std::int32_t copy_step(const schedule::Step& step, View& view,
                                                     std::int32_t first) {
    if constexpr (requires { view.open_for(step); })
        if (!done([&] { return view.open_for(step); })) return first;
    if (step.after_target && !await(step.target_owner, schedule::kArrived, view)) return first;
    if constexpr (View::kRows)
        return copy_rows(step, view, first);
    else
        return copy_places(step, view, first);
}

template <class View>
[[gnu::always_inline]] inline std::int32_t wait_step(const schedule::Step& step, View& view,
                                                     std::int32_t first) {
    for (std::int32_t i = first; i < step.count; ++i)
        if (!await(step.awaited(i), step.milestone, view)) return i;
    return kWhole;
}

// Takes a step that sends, receives or completes messages. Returns: whether it is done.
template <class View>
bool pass_step(const schedule::Step& step, View& view) {
    using schedule::Act;
    if (step.act == Act::send)
        view.send(step.peer(), step.first(step.source_owner), step.count);
    else if (step.act == Act::receive)
        view.receive(step.peer(), step.first(step.target_owner), step.count);
    else
        return done([&] { return view.complete(step.count); });
    return true;
}

template <class View>
[[gnu::always_inline]] inline std::int32_t take_step(const schedule::Step& step, View& view,
                                                     std::int32_t first) {
    COCO_CHECK_DEAR(first >= 0 && (first == 0 || first < step.count), "a walk goes on within a step");
    using schedule::Act;
    if (step.act == Act::copy) [[likely]]
        return copy_step(step, view, first);
    if (step.act == Act::wait) return wait_step(step, view, first);
    delay_if_asked();
    if (step.act == Act::raise) return done([&] { return view.raise(step.milestone); }) ? kWhole : 0;
    if constexpr (requires { view.complete(0); }) return pass_step(step, view) ? kWhole : 0;
    return kWhole;
}

// Goes on from `position`. Returns: whether the end was reached; if not, position says where to go on.
// Inlined: a flight that lives in its runner's frame is then kept in registers.
template <class View>
[[nodiscard, gnu::always_inline]] inline bool walk(const schedule::Schedule& schedule, View& view,
                                                   Position& position) {
    COCO_CHECK_DEAR(position.step <= schedule.steps.size(), "a walk goes on in its schedule");
    const schedule::Step* const begin = schedule.steps.data();
    const schedule::Step* const end = begin + schedule.steps.size();
    const schedule::Step* step = begin + position.step;
    std::int32_t first = position.item;
    for (; step != end; ++step, first = 0) {
        const std::int32_t stopped = take_step(*step, view, first);
        if (stopped != kWhole) [[unlikely]] {
            position = {base::index(step - begin), stopped};
            return false;
        }
    }
    position = {schedule.steps.size(), 0};
    return true;
}

// Walks a schedule from the begin to the end, for views that never poll.
template <class View>
void walk(const schedule::Schedule& schedule, View& view) {
    Position position;
    static_cast<void>(walk(schedule, view, position));
}

}  // namespace coco::exec
