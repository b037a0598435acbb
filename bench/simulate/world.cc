// SPDX-License-Identifier: BSD-3-Clause
#include "world.h"

#include <algorithm>

namespace simulate {

using coco::schedule::Milestone;

World::World(int ranks, int per_node)
    : ranks(ranks),
      per_node(per_node),
      rank(static_cast<std::size_t>(ranks)),
      barrier(simgrid::s4u::Barrier::create(static_cast<unsigned>(ranks))) {
    std::vector<std::int32_t> node;
    for (int r = 0; r < ranks; ++r) node.push_back(r / per_node);
    map = {node, node};
}

std::int64_t World::bytes_of(Element element) const {
    auto hash = static_cast<std::uint32_t>(element.sender) * 2246822519u +
                static_cast<std::uint32_t>(element.receiver) * 3266489917u;
    hash = (hash ^ hash >> 15) * 668265263u;
    hash ^= hash >> 13;
    if (counts == Counts::uneven) return static_cast<std::int64_t>(hash % (block_bytes + 1));
    return counts == Counts::sparse && hash % 16 != 0 ? 0 : block_bytes;
}

// Milestones only grow; the first at or above the wanted one is when it was reached.
const Rank::Raised* Rank::find(Milestone milestone) const {
    auto found = std::ranges::lower_bound(raised_, milestone, {}, &Raised::milestone);
    return found == raised_.end() ? nullptr : &*found;
}

void Rank::raise(Milestone milestone, double time) {
    raised_.push_back({milestone, time});
    // Waking gives the thread away; others may come to wait meanwhile.
    std::vector<Rank*> woken;
    std::erase_if(waiting_, [&](const Waiting& w) {
        if (w.milestone <= milestone) woken.push_back(w.rank);
        return w.milestone <= milestone;
    });
    for (Rank* rank : woken) rank->wake_->release();
}

double Rank::wait(Rank& waiter, Milestone milestone) {
    if (find(milestone) == nullptr) {
        waiting_.push_back({&waiter, milestone});
        waiter.wake_->acquire();
    }
    return find(milestone)->time;
}

}  // namespace simulate
