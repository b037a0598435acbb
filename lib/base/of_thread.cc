// SPDX-License-Identifier: BSD-3-Clause
#include "base/of_thread.h"

#include <limits.h>
#include <pthread.h>

#include <utility>

namespace coco::base {
namespace {

// Of no thread: what is kept then stays when a thread ends.
constexpr pthread_key_t kNoKey = PTHREAD_KEYS_MAX;

constinit thread_local ThreadEnd* t_ends = nullptr;

// By POSIX's keys, as their destructors come behind those of thread_local objects, and in rounds.
void run_ends(void*) {
    for (ThreadEnd* end = std::exchange(t_ends, nullptr); end != nullptr;) {
        ThreadEnd* const next = std::exchange(end->next, nullptr);
        end->act();
        end = next;
    }
}

pthread_key_t key() {
    static const pthread_key_t made = [] {
        pthread_key_t key{};
        return pthread_key_create(&key, run_ends) == 0 ? key : kNoKey;
    }();
    return made;
}

}  // namespace

void run_at_thread_end(ThreadEnd& end) {
    end.next = std::exchange(t_ends, &end);
    pthread_setspecific(key(), &t_ends);
}

}  // namespace coco::base
