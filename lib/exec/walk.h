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
// wait, raise, complete and open_for return false where they would have to wait and the channel polls: then the
// walk returns, to go on there when it is called again. Those of views that never poll return nothing.
#pragma once
#include <type_traits>

#include "blocks/store.h"
#include "exec/delay.h"
#include "schedule/schedule.h"

namespace coco::exec {

// How far a walk has come.
struct Position {
    std::size_t step = 0;
    std::int32_t item = 0;  // of the step: blocks copied, ranks waited for
};

// Does it. Returns: whether it is done; what a function without an answer does is done.
template <class Do>
[[gnu::always_inline]] inline bool done(Do&& act) {
    if constexpr (std::is_void_v<decltype(act())>) {
        act();
        return true;
    } else {
        return act();
    }
}

template <bool delayed, class View>
[[gnu::always_inline]] inline bool await(std::int32_t rank, schedule::Milestone milestone, View& view) {
    if constexpr (delayed) delay();
    return done([&] { return view.wait(rank, milestone); });
}

// Each returns whether it came to the end of the step; else `item` says how far it came.
template <bool delayed, class View>
bool copy_places(const schedule::Step& step, View& view, std::int32_t& item) {
    if constexpr (requires { view.copy_run(step.source(0), step.target(0), 1); })
        if (!step.along_owners) {
            if (step.after_source && !await<delayed>(step.source_owner, schedule::kArrived, view))
                return false;
            view.copy_run(step.source(0), step.target(0), step.count);
            return true;
        }
    for (std::int32_t i = item; i < step.count; ++i) {
        if (step.after_source && !await<delayed>(step.source(i).owner, schedule::kArrived, view)) {
            item = i;
            return false;
        }
        view.copy(step.source(i), step.target(i));
    }
    return true;
}

// The same with addresses, which only go up. Inlined, a loop for each kind: as calls, or as one loop with
// questions, a walk costs up to a third more at 64 B.
template <bool delayed, class View>
[[gnu::always_inline]] inline bool copy_rows(const schedule::Step& step, View& view, std::int32_t& item) {
    const blocks::Row to = view.row(step.target_area, step.target_owner);
    const blocks::Row* from = &view.row(step.source_area, step.source_owner);
    std::byte* target = to.base + step.target_index * to.stride_bytes;
    const std::int64_t index = step.source_index;
    std::int32_t left = step.count;
    if (!step.along_owners) {
        if (step.after_source && !await<delayed>(step.source_owner, schedule::kArrived, view)) return false;
        const std::int64_t stride_bytes = from->stride_bytes;
        const std::byte* source = from->base + index * stride_bytes;
        for (; left != 0; --left, target += to.stride_bytes, source += stride_bytes)
            view.copy(target, source);
    } else if (!step.after_source) {
        for (; left != 0; --left, target += to.stride_bytes, ++from)
            view.copy(target, from->base + index * from->stride_bytes);
    } else {
        if (item != 0) [[unlikely]] {
            left -= item;
            target += item * to.stride_bytes;
            from += item;
        }
        for (std::int32_t owner = step.source_owner + item; left != 0;
             --left, target += to.stride_bytes, ++from) {
            if (!await<delayed>(owner++, schedule::kArrived, view)) [[unlikely]] {
                item = step.count - left;
                return false;
            }
            view.copy(target, from->base + index * from->stride_bytes);
        }
    }
    return true;
}

template <bool delayed, class View>
[[gnu::always_inline]] inline bool copy_step(const schedule::Step& step, View& view, std::int32_t& item) {
    if constexpr (requires { view.open_for(step); })
        if (!done([&] { return view.open_for(step); })) return false;
    if (step.after_target && !await<delayed>(step.target_owner, schedule::kArrived, view)) return false;
    if constexpr (View::kRows)
        return copy_rows<delayed>(step, view, item);
    else
        return copy_places<delayed>(step, view, item);
}

template <bool delayed, class View>
bool wait_step(const schedule::Step& step, View& view, std::int32_t& item) {
    for (std::int32_t i = item; i < step.count; ++i)
        if (!await<delayed>(step.awaited(i), step.milestone, view)) {
            item = i;
            return false;
        }
    return true;
}

// A message's step.
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

template <bool delayed, class View>
bool walk_step(const schedule::Step& step, View& view, std::int32_t& item) {
    using schedule::Act;
    if (step.act == Act::wait) return wait_step<delayed>(step, view, item);
    if constexpr (delayed) delay();
    if (step.act == Act::raise) return done([&] { return view.raise(step.milestone); });
    if constexpr (requires { view.complete(0); }) return pass_step(step, view);
    return true;
}

template <bool delayed, class View>
bool walk_steps(const schedule::Schedule& schedule, View& view, Position& position) {
    const std::size_t steps = schedule.steps.size();
    std::int32_t item = position.item;
    for (std::size_t i = position.step; i != steps; ++i, item = 0) {
        const schedule::Step& step = schedule.steps[i];
        const bool is_over = step.act == schedule::Act::copy ? copy_step<delayed>(step, view, item)
                                                             : walk_step<delayed>(step, view, item);
        if (!is_over) [[unlikely]] {
            position = {i, item};
            return false;
        }
    }
    position = {steps, 0};
    return true;
}

// Goes on from `position`. Returns: whether the end was reached; if not, position says where to go on.
template <class View>
[[nodiscard]] bool walk(const schedule::Schedule& schedule, View& view, Position& position) {
    if (g_delay_us != 0) [[unlikely]]
        return walk_steps<true>(schedule, view, position);
    return walk_steps<false>(schedule, view, position);
}

// From the begin to the end, for views that never poll.
template <class View>
void walk(const schedule::Schedule& schedule, View& view) {
    Position position;
    static_cast<void>(walk(schedule, view, position));
}

}  // namespace coco::exec
