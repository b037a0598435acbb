// SPDX-License-Identifier: BSD-3-Clause
//
// Whether this process may read its mates' private memory through the kernel. It tries: each control block
// says where it is in its owner.
#include <cerrno>

#include "base/check.h"
#include "base/index.h"
#include "channel/channel.h"
#include "os/process_memory.h"

namespace coco::channel {

bool g_never_reads = false;
std::atomic<std::uint32_t> g_refused_reads{0};

namespace {

// Relaxed: a test counts its own reads.
bool is_refused_by_test() {
    static std::atomic<std::uint32_t> reads{0};
    const std::uint32_t every = g_refused_reads.load(std::memory_order_relaxed);
    if (every == 0 || reads.fetch_add(1, std::memory_order_relaxed) % every != 0) return false;
    errno = EPERM;
    return true;
}

}  // namespace

bool Channel::try_reading() {
    if (g_never_reads) return false;
    for (std::int32_t mate : mates_) {
        const Control* control = peers_[base::index(mate)].control;
        if (control == nullptr) return false;  // it is found with its next slot; asked again then
        std::uint64_t number = 0;
        const std::int32_t thread = control->thread.load(std::memory_order_relaxed);
        if (!os::read_process(thread, &control->owners_address->number, &number, sizeof number)) {
            // A thread that has ended is not the last one that the mate shows.
            if (errno != ESRCH) reads_mates_ = Answer::no;
            return false;
        }
        if (number != control->number) {
            reads_mates_ = Answer::no;
            return false;
        }
    }
    reads_mates_ = Answer::yes;
    return true;
}

bool Channel::can_all_read() const {
    if (control_->slots[(own_epoch_base_ + epoch_) % kSlots].reads_mates == 0) return false;
    for (std::int32_t mate : mates_)
        if (slot_of(mate).reads_mates == 0) return false;
    return true;
}

bool Channel::read_private(std::int32_t peer, const std::byte* from, std::span<const iovec> to) {
    COCO_CHECK_DEAR(peer >= 0 && base::index(peer) < peers_.size() && peer != rank_,
                    "a rank reads the memory of another one");
    const Control* control = peers_[base::index(peer)].control;
    COCO_CHECK_DEAR(control != nullptr, "a peer whose memory is read was found");
    if (!is_refused_by_test() && os::read_process(control->thread.load(std::memory_order_relaxed), from, to))
        return true;
    if (errno != EFAULT && g_refused_reads.load(std::memory_order_relaxed) == 0) reads_mates_ = Answer::no;
    return false;
}

}  // namespace coco::channel
