// SPDX-License-Identifier: BSD-3-Clause
//
// Who serves the replaceable operators of C++. They are a family of their own: ours if malloc's family is and
// if the program replaces none of them. Where it replaces some, the others have to call these, as the
// standard says and as the C++ library's own do: then ours hand on to the next definition. Called by
// new_delete.cc. Thread safety: any thread. Fails: no.
#pragma once
#include <atomic>

namespace coco::interpose {

enum Operator {
    kNew,
    kNewArray,
    kNewNothrow,
    kNewArrayNothrow,
    kNewAligned,
    kNewArrayAligned,
    kNewAlignedNothrow,
    kNewArrayAlignedNothrow,
    kDelete,
    kDeleteArray,
    kDeleteNothrow,
    kDeleteArrayNothrow,
    kDeleteSized,
    kDeleteArraySized,
    kDeleteAligned,
    kDeleteArrayAligned,
    kDeleteAlignedNothrow,
    kDeleteArrayAlignedNothrow,
    kDeleteSizedAligned,
    kDeleteArraySizedAligned,
    kOperators
};
extern constinit std::atomic<bool> g_operators_are_ours;  // false as long as it is undecided
bool decide_operators();
inline bool operators_are_ours() {
    return g_operators_are_ours.load(std::memory_order_relaxed) || decide_operators();
}

// The next definition after ours. Null where there is none: in a program without a C++ library of its own
// (one may be loaded later, out of our sight). Requires: operators_are_ours() has returned false.
void* next_operator(Operator which);

}  // namespace coco::interpose
