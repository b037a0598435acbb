// SPDX-License-Identifier: BSD-3-Clause
#include "channel/control_pool.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <new>
#include <utility>

#include "heap/heap.h"
#include "heap/segment.h"

namespace coco::channel {
namespace {

struct Retired {
    Control* control = nullptr;
    std::vector<Pending> pending = {};
    std::vector<void*> memory = {};
    // Of those that have met by directories; id 0: of others. leavers: null while this rank has not counted
    // itself out.
    Exit exit = {};
    std::atomic<std::uint64_t>* leavers = nullptr;
    std::uint64_t leavers_at_end = 0;
};

struct Pool {
    std::mutex mutex;
    std::vector<Control*> free;
    std::deque<Retired> retired;  // the longest retired first
};

// Never destroyed: communicators may be freed after static destructors have run.
Pool& pool() {
    static Pool* instance = new Pool;
    return *instance;
}

// Counts this rank out as soon as the block that counts can be found.
void count_out(Retired& retired) {
    const Exit& exit = retired.exit;
    const ControlCard* card = exit.first_directory->find(exit.id);
    if (card == nullptr) return;
    auto* control = reinterpret_cast<Control*>(exit.first_segment + card->control_at);
    retired.leavers_at_end = card->leavers_before + exit.ranks;
    retired.leavers = &control->leavers;
    // Release: whatever this rank read of others' blocks is read.
    control->leavers.fetch_add(1, std::memory_order_release);
}

bool is_over(Retired& retired) {
    if (retired.exit.id == 0)
        // Acquire pairs with the raise of each rank's last kDone: its reads of our block are before it.
        return std::ranges::all_of(retired.pending, [](const Pending& p) {
            return p.flag->load(std::memory_order_acquire) >= p.value;
        });
    if (retired.leavers == nullptr) count_out(retired);
    // Acquire pairs with the others' count_out().
    return retired.leavers != nullptr &&
           retired.leavers->load(std::memory_order_acquire) >= retired.leavers_at_end;
}

void set_free(Pool& p, Retired& retired) {
    if (retired.exit.id != 0) retired.exit.own_directory->remove(retired.exit.id);
    p.free.push_back(retired.control);
    for (void* memory : retired.memory) heap::release(memory);
}

// Looks at blocks that were retired, the oldest first, until one is free: each look may fetch a line from
// another rank's cache.
void find_free(Pool& p) {
    for (std::size_t left = p.retired.size(); left != 0 && p.free.empty(); --left) {
        Retired retired = std::move(p.retired.front());
        p.retired.pop_front();
        if (is_over(retired))
            set_free(p, retired);
        else
            p.retired.push_back(std::move(retired));
    }
}

Control* make_control(bool shared) {
    void* memory = shared ? heap::take_room(sizeof(Control)) : nullptr;
    if (memory == nullptr) memory = heap::allocate_aligned(4096, sizeof(Control));
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
    new (&control->leavers) std::atomic<std::uint64_t>(0);
    static std::atomic<std::uint64_t> made{0};
    control->number = made.fetch_add(1, std::memory_order_relaxed);
    control->tape_at = 0;
    new (&control->tape[0]) std::atomic<std::uint64_t>(0);
    return control;
}

}  // namespace

Control* take_control() {
    Pool& p = pool();
    std::lock_guard lock(p.mutex);
    // Those retired last are likely to be in use by a mate that is late.
    constexpr std::size_t kRest = 4;
    if (p.free.empty() && p.retired.size() > kRest) find_free(p);
    if (p.free.empty()) return make_control(true);
    Control* control = p.free.back();
    p.free.pop_back();
    return control;
}

Control* make_lone_control() { return make_control(false); }
void end_lone_control(Control* control) { heap::release(control); }

namespace {

void retire(Retired&& retired) {
    constexpr std::size_t kMany = 16;
    Pool& p = pool();
    std::lock_guard lock(p.mutex);
    if (retired.exit.id != 0) count_out(retired);
    p.retired.push_back(std::move(retired));
    // Their memory goes back, too; and this rank counts itself out where it could not before.
    if (p.retired.size() > kMany && p.free.empty()) find_free(p);
}

}  // namespace

void retire_control(Control* control, std::vector<Pending> pending, std::vector<void*> memory) {
    retire({.control = control, .pending = std::move(pending), .memory = std::move(memory)});
}

void retire_control(Control* control, const Exit& exit, std::vector<void*> memory) {
    retire({.control = control, .memory = std::move(memory), .exit = exit});
}

bool show(Directory& own_directory, std::uint64_t id, const ControlCard& card) {
    std::lock_guard lock(pool().mutex);
    return own_directory.add(id, card);
}

}  // namespace coco::channel
