// SPDX-License-Identifier: BSD-3-Clause
#include "operators.h"

#include <mutex>

#include "base/lock.h"
#include "heap/malloc_family.h"
#include "os/symbols.h"

namespace coco::interpose {

// Relaxed: nothing goes with true, and a thread that reads false goes on to g_decided.
constinit std::atomic<bool> g_operators_are_ours{false};

namespace {

constexpr const char* kSymbols[kOperators] = {"_Znwm",
                                              "_Znam",
                                              "_ZnwmRKSt9nothrow_t",
                                              "_ZnamRKSt9nothrow_t",
                                              "_ZnwmSt11align_val_t",
                                              "_ZnamSt11align_val_t",
                                              "_ZnwmSt11align_val_tRKSt9nothrow_t",
                                              "_ZnamSt11align_val_tRKSt9nothrow_t",
                                              "_ZdlPv",
                                              "_ZdaPv",
                                              "_ZdlPvRKSt9nothrow_t",
                                              "_ZdaPvRKSt9nothrow_t",
                                              "_ZdlPvm",
                                              "_ZdaPvm",
                                              "_ZdlPvSt11align_val_t",
                                              "_ZdaPvSt11align_val_t",
                                              "_ZdlPvSt11align_val_tRKSt9nothrow_t",
                                              "_ZdaPvSt11align_val_tRKSt9nothrow_t",
                                              "_ZdlPvmSt11align_val_t",
                                              "_ZdaPvmSt11align_val_t"};

bool none_is_replaced() {
    for (const char* symbol : kSymbols)
        if (os::definer(symbol) != os::own_object()) return false;
    os::Object next = os::definer(kSymbols[kNew], os::own_object());
    return next == nullptr || next == os::definer("__cxa_throw", os::own_object());
}

constinit std::atomic<bool> g_decided{false};
constinit coco::base::Lock g_deciding;
constinit thread_local bool t_deciding = false;
constinit void* g_next[kOperators] = {};

void decide() {
    t_deciding = true;
    bool ours = heap::malloc_family_is_ours() && none_is_replaced();
    for (int i = 0; !ours && i < kOperators; ++i) g_next[i] = heap::next_definition(kSymbols[i]);
    g_operators_are_ours.store(ours, std::memory_order_relaxed);
    t_deciding = false;
}

}  // namespace

// dlsym may make objects while it is asked for the next definitions: these come from malloc.
bool decide_operators() {
    if (!g_decided.load(std::memory_order_acquire)) {
        if (t_deciding || heap::is_deciding_malloc_family()) return false;
        std::scoped_lock hold(g_deciding);
        if (!g_decided.load(std::memory_order_relaxed)) decide();
        g_decided.store(true, std::memory_order_release);  // pairs with the acquire above: g_next is written
    }
    return g_operators_are_ours.load(std::memory_order_relaxed);
}

void* next_operator(Operator which) { return g_next[which]; }

}  // namespace coco::interpose
