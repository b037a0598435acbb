// SPDX-License-Identifier: BSD-3-Clause
//
// The control blocks of this process. A block goes round: taken by a channel, retired when that is
// closed, free again once every rank of that channel has finished its last call (until then somebody may
// still read the block). Blocks are never unmapped or handed back to the allocator. Thread safety: any
// thread; a lock inside.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "channel/control.h"
#include "channel/directory.h"

namespace coco::channel {

// A rank that has to finish before a retired block may be used again: the value that its flag must reach.
struct Pending {
    const std::atomic<std::uint64_t>* flag;
    std::uint64_t value;
};

// How the ranks of a channel that have met by their directories count themselves out of it.
struct LeaveInfo {
    std::uint64_t id;
    std::uint64_t ranks;               // the channel's ranks on this node
    const Directory* first_directory;  // that of the first of these ranks, whose block counts the leavers
    std::byte* first_segment;          // that rank's segment in this process
    Directory* own_directory;          // where this process's block was shown
};

class ControlPool {
  public:
    // Makes blocks that the first channels take without page faults. Called in MPI_Init. Returns: whether
    // there is memory for them.
    bool prepare();
    // Returns: a block in shared memory; null if there is no shared memory for it.
    Control* take();
    // memory: released when the block is free again.
    void retire(Control* control, std::vector<Pending> pending, std::vector<void*> memory = {});
    // The same for a block that was shown in this process's directory: counts this rank out. Where the block
    // that counts has not been shown yet, that is done later, with the next communicator that is opened or
    // freed.
    void retire(Control* control, const LeaveInfo& leave, std::vector<void*> memory);
    // Shows a block in this process's directory. Returns: false if there is no room.
    bool show(Directory& own_directory, std::uint64_t id, const ControlCard& card);

  private:
    struct Retired {
        Control* control = nullptr;
        std::vector<Pending> pending = {};
        std::vector<void*> memory = {};
        // leave: for ranks that have met by directories; id 0: for others. leavers: the count to look at;
        // null while this rank has not counted itself out. leavers_at_end: that count once all ranks have
        // left.
        LeaveInfo leave = {};
        std::atomic<std::uint64_t>* leavers = nullptr;
        std::uint64_t leavers_at_end = 0;
    };

    static void count_out(Retired& retired);
    static bool is_over(Retired& retired);
    void set_free(Retired& retired);
    void find_free();
    void retire(Retired&& retired);

    std::mutex mutex_;
    std::vector<Control*> free_;
    std::deque<Retired> retired_;  // the longest retired first
};

// The pool of this process.
ControlPool& control_pool();

// Makes a block in private memory, for a rank that is alone on its node; frees such a block.
Control* make_lone_control();
void end_lone_control(Control* control);

}  // namespace coco::channel
