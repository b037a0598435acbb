// SPDX-License-Identifier: BSD-3-Clause
//
// Objects that a thread keeps, so that calls allocate nothing once they have grown. Called by dispatch and
// exec. Thread safety: each thread has its own.
#pragma once

namespace coco::base {

// Returns: this thread's object, made when it is first asked for, freed when the thread ends. Who asks later,
// out of destructors, gets one that stays. User: whose it is; two of one type are two.
template <class Object, class User>
Object& of_thread() {
    constinit static thread_local Object* object = nullptr;
    struct End {
        ~End() {
            delete object;
            object = nullptr;
        }
    };
    if (object == nullptr) {
        object = new Object;
        static thread_local End end;
        static_cast<void>(end);
    }
    return *object;
}

}  // namespace coco::base
