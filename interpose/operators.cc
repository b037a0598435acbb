// SPDX-License-Identifier: BSD-3-Clause
#include "operators.h"

#include "heap/family.h"
#include "os/symbols.h"

namespace coco::interpose {

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

struct Found {
    bool ours;
    void* next[kOperators];
};

Found find() {
    Found found{};
    found.ours = heap::family_is_ours() && none_is_replaced();
    for (int i = 0; !found.ours && i < kOperators; ++i) found.next[i] = heap::next_definition(kSymbols[i]);
    return found;
}

const Found& found() {
    static const Found once = find();
    return once;
}

}  // namespace

bool decide_operators() {
    if (found().ours) g_operators_are_ours.store(true, std::memory_order_relaxed);
    return found().ours;
}

void* next_operator(Operator which) { return found().next[which]; }

}  // namespace coco::interpose
