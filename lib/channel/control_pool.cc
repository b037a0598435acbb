// SPDX-License-Identifier: BSD-3-Clause
#include "channel/control_pool.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "heap/heap.h"
#include "heap/segment.h"
#include "os/process.h"
#include "os/shared_memory.h"

namespace coco::channel {
// Never destroyed: communicators may be freed after static destructors have run.
ControlPool& control_pool() {
    static ControlPool* instance = new ControlPool;
    return *instance;
}

// Counts this rank out as soon as the block that counts can be found.
void ControlPool::count_out(Retired& retired) {
    const LeaveInfo& leave = retired.leave;
    COCO_CHECK(leave.ranks >= 1, "a channel that ends has ranks");
    COCO_CHECK(leave.first_directory != nullptr && leave.first_segment != nullptr,
               "the block that counts the leavers can be found");
    const ControlCard* card = leave.first_directory->find(leave.id);
    if (card == nullptr) return;
    heap::follow_growth(leave.first_segment);
    auto* control = reinterpret_cast<Control*>(leave.first_segment + card->control_at);
    retired.leavers_at_end = card->leavers_before + leave.ranks;
    retired.leavers = &control->leavers;
    // Release: pairs with the load in is_over(). Whatever this rank read of others' blocks is read. The
    // additions of all ranks are one release sequence, so a rank that reads the last of them synchronises
    // with each.
    control->leavers.fetch_add(1, std::memory_order_release);
}

bool ControlPool::is_over(Retired& retired) {
    if (retired.leave.id == 0)
        // Acquire: pairs with the raise of each rank's last kDone: its reads of our block are before it, and
        // the block is written next.
        return std::ranges::all_of(retired.pending, [](const Pending& p) {
            return p.flag->load(std::memory_order_acquire) >= p.value;
        });
    if (retired.leavers == nullptr) count_out(retired);
    // Acquire: pairs with the others' count_out(): the block is written next.
    return retired.leavers != nullptr &&
           retired.leavers->load(std::memory_order_acquire) >= retired.leavers_at_end;
}

void ControlPool::set_free(Retired& retired) {
    COCO_CHECK(retired.control != nullptr, "a block is set free that a channel had");
    if (retired.leave.id != 0) retired.leave.own_directory->remove(retired.leave.id);
    free_.push_back(retired.control);
    for (void* memory : retired.memory) heap::release(memory);
}

// Looks at blocks that were retired, the oldest first, until one is free: each look may fetch a line from
// another rank's cache.
void ControlPool::find_free() {
    for (std::size_t left = retired_.size(); left != 0 && free_.empty(); --left) {
        Retired retired = std::move(retired_.front());
        retired_.pop_front();
        if (is_over(retired))
            set_free(retired);
        else
            retired_.push_back(std::move(retired));
    }
}

namespace {

// Memory from the heap made like fresh room.
void* zeroed(void* memory) {
    return memory != nullptr ? std::memset(memory, 0, offsetof(Control, stage)) : nullptr;
}

// A block is as good as new where its memory is zeros, but for what is written here: no page is touched
// before it is used.
Control* make_control(bool shared) {
    void* memory = shared ? heap::take_room(sizeof(Control)) : nullptr;
    if (memory == nullptr) memory = zeroed(heap::allocate_shared(4096, sizeof(Control)));
    if (memory == nullptr) return nullptr;
    if (shared && !heap::is_shared(memory, sizeof(Control))) {
        heap::release(memory);
        return nullptr;
    }
    auto* control = static_cast<Control*>(memory);
    // Epoch 0 counts as finished: nobody waits for calls before the first. Relaxed: nobody knows of the block
    // before its owner says where it is, by a card in its directory or a message of MPI's.
    control->flag.value.store(schedule::kDone, std::memory_order_relaxed);
    static std::atomic<std::uint64_t> made{0};
    control->number =
        made.fetch_add(1, std::memory_order_relaxed);  // has no partner: each gets another number
    control->owners_address = control;
    new (&control->thread) std::atomic<std::int32_t>(os::own_thread());
    return control;
}

}  // namespace

Control* ControlPool::take() {
    std::lock_guard lock(mutex_);
    if (free_.empty() && retired_.size() > kRetiredRest) find_free();
    if (free_.empty()) return make_control(true);
    Control* control = free_.back();
    free_.pop_back();
    COCO_CHECK((control->flag.value.load(std::memory_order_relaxed) & schedule::kDone) == schedule::kDone,
               "a free block has finished its last call");
    return control;
}

bool ControlPool::prepare() {
    constexpr int kBlocks = 2;  // MPI_COMM_WORLD's, and that of the first communicator that a program makes
    std::lock_guard lock(mutex_);
    for (int i = 0; i < kBlocks; ++i) {
        Control* control = make_control(true);
        if (control == nullptr) return false;
        os::populate(control, offsetof(Control, stage));
        free_.push_back(control);
    }
    return true;
}

Control* make_lone_control() { return make_control(false); }
void end_lone_control(Control* control) { heap::release(control); }

void ControlPool::retire(Retired&& retired) {
    COCO_CHECK(retired.control != nullptr, "a block is retired that a channel had");
    COCO_CHECK(retired.leave.id == 0 || retired.leave.own_directory != nullptr,
               "a block that was shown has a directory");
    std::lock_guard lock(mutex_);
    if (retired.leave.id != 0) count_out(retired);
    retired_.push_back(std::move(retired));
    // Blocks found free give back their memory, too; and this rank counts itself out where it could not
    // before.
    if (retired_.size() > kRetiredMany && free_.empty()) find_free();
}

void ControlPool::retire(Control* control, std::vector<Pending> pending, std::vector<void*> memory) {
    retire({.control = control, .pending = std::move(pending), .memory = std::move(memory)});
}

void ControlPool::retire(Control* control, const LeaveInfo& leave, std::vector<void*> memory) {
    retire({.control = control, .memory = std::move(memory), .leave = leave});
}

bool ControlPool::show(Directory& own_directory, std::uint64_t id, const ControlCard& card) {
    std::lock_guard lock(mutex_);
    return own_directory.add(id, card);
}

}  // namespace coco::channel
