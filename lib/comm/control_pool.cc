// SPDX-License-Identifier: BSD-3-Clause
#include "comm/control_pool.h"

#include <algorithm>
#include <mutex>
#include <new>

#include "heap/heap.h"
#include "heap/segment.h"

namespace coco::comm {
namespace {

struct Retired {
    Control* control;
    std::vector<Pending> pending;
    std::vector<void*> memory;
};

struct Pool {
    std::mutex mutex;
    std::vector<Control*> free;
    std::vector<Retired> retired;
};

// Never destroyed: communicators may be freed after static destructors have run.
Pool& pool() {
    static Pool* instance = new Pool;
    return *instance;
}

bool is_over(const Retired& retired) {
    // Acquire pairs with the raise of each rank's last kDone: its reads of our block are before it.
    return std::ranges::all_of(
        retired.pending, [](const Pending& p) { return p.flag->load(std::memory_order_acquire) >= p.value; });
}

void sweep(Pool& p) {
    std::erase_if(p.retired, [&](const Retired& retired) {
        if (!is_over(retired)) return false;
        p.free.push_back(retired.control);
        for (void* memory : retired.memory) heap::release(memory);
        return true;
    });
}

Control* make_control(bool shared) {
    void* memory = heap::allocate_aligned(4096, sizeof(Control));
    if (memory == nullptr) return nullptr;
    if (shared && !heap::is_shared(memory, sizeof(Control))) {
        heap::release(memory);
        return nullptr;
    }
    auto* control = static_cast<Control*>(memory);
    new (&control->flag) sync::Flag;
    // Epoch 0 counts as finished: nobody waits for calls before the first.
    control->flag.value.store(schedule::kDone, std::memory_order_relaxed);
    for (Slot& slot : control->slots) new (&slot.epoch) std::atomic<std::uint64_t>(0);
    control->tape_at = 0;
    new (&control->tape[0]) std::atomic<std::uint64_t>(0);
    return control;
}

}  // namespace

Control* take_control() {
    Pool& p = pool();
    std::lock_guard lock(p.mutex);
    sweep(p);
    if (p.free.empty()) return make_control(true);
    Control* control = p.free.back();
    p.free.pop_back();
    return control;
}

Control* make_lone_control() { return make_control(false); }
void end_lone_control(Control* control) { heap::release(control); }

void retire_control(Control* control, std::vector<Pending> pending, std::vector<void*> memory) {
    Pool& p = pool();
    std::lock_guard lock(p.mutex);
    p.retired.push_back({control, std::move(pending), std::move(memory)});
    sweep(p);
}

}  // namespace coco::comm
