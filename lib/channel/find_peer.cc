// SPDX-License-Identifier: BSD-3-Clause
//
// How a channel finds a peer's control block: in the peer's directory, where the peer shows it in its first
// call on the channel.
#include "base/check.h"
#include "base/index.h"
#include "base/log.h"
#include "channel/channel.h"
#include "os/clock.h"
#include "os/cpu.h"

namespace coco::channel {
namespace {

// A rank that waits for a mate's first call on a communicator waits for ever if the mate has left its call to
// the MPI library, as it does in wrong programs whose block sizes differ. Nobody can tell that from a mate
// that comes late, so the rank says once which mate it waits for, and waits on.
struct Vigil {
    std::uint64_t warn_at_ns = 0;
    std::int32_t rank = 0, peer = 0;
    std::size_t ranks = 0;
    bool (*progress)() = nullptr;
};
thread_local Vigil t_vigil;

bool drive_and_warn() {
    constexpr std::uint64_t kNever = UINT64_MAX;
    if (os::now_ns() >= t_vigil.warn_at_ns) {
        t_vigil.warn_at_ns = kNever;
        COCO_LOG(warn,
                 "rank " << t_vigil.rank << " of a communicator of " << t_vigil.ranks
                         << " ranks has waited long for rank " << t_vigil.peer
                         << " in its first exchange there: if the job hangs, their block sizes may differ");
    }
    return t_vigil.progress != nullptr && t_vigil.progress();
}

}  // namespace

void Channel::find_peer(std::int32_t peer) {
    Peer& p = peers_[base::index(peer)];
    COCO_CHECK(p.directory != nullptr && id_ != 0, "a peer whose block is not known shows it in a directory");
    Directory& directory = *p.directory;
    const ControlCard* card = directory.find(id_);
    // Most mates are there, or about to come: at first this looks only for the card, and not at the line of
    // the changes, which the mate writes to.
    for (std::uint32_t look = 0; card == nullptr && look < waiting.spins; ++look) {
        os::pause();
        card = directory.find(id_);
    }
    if (card == nullptr) {
        constexpr std::uint64_t kLong_ns = 30'000'000'000u;
        t_vigil = {os::now_ns() + kLong_ns, rank_, peer, peers_.size(), waiting.progress};
        waiting.progress = drive_and_warn;
        sync::Flag& changes = directory.changes();
        while (card == nullptr) {
            // Acquire: pairs with the raise in Directory::add(). Cards added up to what is seen here are
            // found by the look that follows; for later ones the wait ends, which is for more than was seen.
            const std::uint64_t seen = changes.value.load(std::memory_order_acquire);
            card = directory.find(id_);
            if (card == nullptr) wait_for(changes.value, changes.doorbell, seen + 1);
        }
        waiting.progress = t_vigil.progress;
    }
    p.control = reinterpret_cast<Control*>(at(peer, card->control_at));
    p.epoch_base = card->epoch_base;
    p.tape_at = card->tape_at;
}

}  // namespace coco::channel
