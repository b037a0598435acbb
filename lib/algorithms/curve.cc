// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/curve.h"

#include <algorithm>
#include <set>

#include "algorithms/blocks.h"
#include "base/check.h"
#include "base/index.h"
#include "schedule/order.h"
#include "topology/share.h"

namespace coco::algorithms {
namespace {

using schedule::Cell;
using schedule::Matrix;

// The blocks that one group sends to another. The receiving group copies them.
struct GroupPair {
    const Group& receivers;
    const Group& senders;

    Matrix matrix() const { return {size_of(receivers), size_of(senders)}; }
    topology::Share share_of_member(std::int32_t member) const {
        return topology::share_of(matrix().cells(), size_of(receivers), member);
    }
    std::int32_t copier_of(Cell cell) const {
        auto member =
            topology::part_of(matrix().cells(), size_of(receivers), morton_position(matrix(), cell));
        return receivers[base::index(member)];
    }
    static std::int32_t size_of(const Group& group) { return base::number(group.size()); }
};

struct Membership {
    std::int32_t group;
    std::int32_t member;
};

Membership find_rank(const std::vector<Group>& groups, std::int32_t rank) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
        auto at = std::find(groups[g].begin(), groups[g].end(), rank);
        if (at != groups[g].end()) return {base::number(g), base::number(at - groups[g].begin())};
    }
    return {-1, -1};
}

class Walk {
  public:
    Walk(const Shape& shape, const std::vector<Group>& groups)
        : shape_(shape), groups_(groups), me_(find_rank(groups, shape.rank)) {
        COCO_CHECK(me_.group >= 0, "every rank is in a group");
        std::int32_t members = 0;
        for (const Group& one : groups_) members += GroupPair::size_of(one);
        COCO_CHECK(members == shape.map->ranks(), "every rank is in one group only");
    }

    schedule::Schedule take() {
        steps_.raise(schedule::kArrived);
        for (std::int32_t i = 0; i < group_count(); ++i) copy_my_share({group(0), group(i)});
        steps_.raise(schedule::kDone);
        wait_for_those_who_touch_mine();
        return steps_.take();
    }

  private:
    std::int32_t group_count() const { return base::number(groups_.size()); }
    // The group `i` places after mine.
    const Group& group(std::int32_t i) const { return groups_[base::index((me_.group + i) % group_count())]; }

    void copy_my_share(const GroupPair& pair) {
        auto share = pair.share_of_member(me_.member);
        for (Cell cell : schedule::morton_range(pair.matrix(), share.first, share.count)) {
            std::int32_t sender = pair.senders[base::index(cell.column)];
            std::int32_t receiver = pair.receivers[base::index(cell.row)];
            await_arrival(sender);
            await_arrival(receiver);
            copy_block(steps_, shape_.exchange, sender, receiver);
        }
    }

    void await_arrival(std::int32_t rank) {
        if (rank != shape_.rank && arrived_.insert(rank).second) steps_.wait(rank, schedule::kArrived);
    }

    void wait_for_those_who_touch_mine() {
        std::set<std::int32_t> touching;
        for (std::int32_t i = 0; i < group_count(); ++i) {
            GroupPair to_me{group(0), group(i)}, from_me{group(i), group(0)};
            for (std::int32_t sender = 0; sender < GroupPair::size_of(group(i)); ++sender)
                touching.insert(to_me.copier_of({me_.member, sender}));
            for (std::int32_t receiver = 0; receiver < GroupPair::size_of(group(i)); ++receiver)
                touching.insert(from_me.copier_of({receiver, me_.member}));
        }
        touching.erase(shape_.rank);
        for (std::int32_t rank : touching) steps_.wait(rank, schedule::kDone);
    }

    const Shape& shape_;
    const std::vector<Group>& groups_;
    Membership me_;
    schedule::Builder steps_;
    std::set<std::int32_t> arrived_;
};

}  // namespace

schedule::Schedule along_curves(const Shape& shape, const std::vector<Group>& groups) {
    return Walk(shape, groups).take();
}

}  // namespace coco::algorithms
