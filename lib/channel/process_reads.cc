// SPDX-License-Identifier: BSD-3-Clause
//
// Whether this process may read its mates' private memory through the kernel. It tries: each control block says where it
// is in its owner.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/log.h"
#include "channel/channel.h"
#include "os/process_memory.h"

namespace coco::channel {

bool g_never_reads = false;

bool Channel::try_reading() {
    if (g_never_reads) return false;
    for (std::int32_t mate : mates_) {
        const Control* control = peers_[static_cast<std::size_t>(mate)].control;
        if (control == nullptr) return false;  // it is found with its next slot; asked again then
        std::uint64_t number = 0;
        if (!os::read_process(control->process, &control->owners_address->number, &number, sizeof number) ||
            number != control->number) {
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

void Channel::read_private(std::int32_t peer, const std::byte* from, std::span<const iovec> to) const {
    const std::int32_t process = peers_[static_cast<std::size_t>(peer)].control->process;
    if (os::read_process(process, from, to)) return;
    base::log(base::LogLevel::error, base::Text() << "process " << process
                                                  << " has closed its memory to its mates: errno " << errno
                                                  << "; COCO_DISABLE=1 helps");
    usleep(100'000);  // a launcher may drop what was printed just before a job is killed
    std::abort();
}

}  // namespace coco::channel
