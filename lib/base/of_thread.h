// SPDX-License-Identifier: BSD-3-Clause
//
// Objects that a thread keeps, so that calls allocate nothing once they have grown. Called by dispatch, comm
// and exec. Thread safety: each thread has its own.
#pragma once

namespace coco::base {

// What is to be done when a thread ends, behind its thread_local objects' destructors, which may still make
// calls: as a node in the thread's list, which is constant to begin with.
struct ThreadEnd {
    void (*act)();
    ThreadEnd* next = nullptr;
};
// Has a node's act run once when this thread ends. It may be asked for again by then, in the ends of others,
// up to four times in a row; the process's end is no thread's end.
void run_at_thread_end(ThreadEnd& end);

// Returns: this thread's object, made when it is first asked for, freed when the thread ends. User: whose it
// is; two of one type are two.
template <class Object, class User>
Object& of_thread() {
    constinit static thread_local Object* object = nullptr;
    constinit static thread_local ThreadEnd end{[] {
        delete object;
        object = nullptr;
    }};
    if (object == nullptr) {
        object = new Object;
        run_at_thread_end(end);
    }
    return *object;
}

}  // namespace coco::base
