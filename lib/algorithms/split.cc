// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     libcoco's own
// Idea:       A message from each rank to each rank of another node, straight from and to their buffers.
//             Ranks of a node take their blocks from what their mates have left in scratch, or show in their
//             buffers, while the messages are under way. Node after node, each rank begins with another one
//             of the ranks there.
// Needs:      nothing: any ranks, any nodes; scratch on the shared heap
// Steps:      P - L messages a rank each way, at most window= (16) of them under way at once, or those of
//             one node if these are more
// Bytes:      per rank P - L blocks sent and L copied
// Scratch:    L blocks
// Good for:   blocks so large that one copy more takes longer than a message
// Milestones: none of its own
#include <algorithm>

#include "algorithms/blocks.h"
#include "algorithms/nodes.h"
#include "base/check.h"
#include "base/index.h"

namespace coco::algorithms {
namespace {

constexpr std::int32_t kUsualWindow = 16;

class SplitScheme {
  public:
    explicit SplitScheme(const Shape& shape)
        : shape_(shape),
          nodes_(shape),
          turns_(nodes_.count() - 1),
          window_(shape.parameters.window != 0 ? shape.parameters.window : kUsualWindow) {}

    schedule::Schedule take() {
        fill_window(0);
        nodes_.exchange_within(steps_);
        for (std::int32_t turn = 0; turn < turns_; ++turn) {
            fill_window(turn);
            under_way_ -= messages_of(turn);
            steps_.complete(under_way_);
        }
        return steps_.scratch(nodes_.left_within()).raise(schedule::kDone).take();
    }

  private:
    std::int32_t to_node(std::int32_t turn) const { return nodes_.at_distance(turn + 1); }
    std::int32_t from_node(std::int32_t turn) const { return nodes_.at_distance(-turn - 1); }
    std::int32_t messages_of(std::int32_t turn) const {
        return nodes_.size_of(to_node(turn)) + nodes_.size_of(from_node(turn));
    }

    // Starts the first turn that is not complete, and those behind it for which the window has room: it is
    // for messages each way.
    void fill_window(std::int32_t turn) {
        for (; started_ < turns_; ++started_) {
            if (started_ > turn && under_way_ + messages_of(started_) > 2 * window_) return;
            start(started_);
            under_way_ += messages_of(started_);
        }
    }
    void start(std::int32_t turn) {
        COCO_CHECK(turn >= 0 && turn < turns_, "there is a turn for each other node");
        for_ranks_of(from_node(turn), -1,
                     [&](std::int32_t sender) { steps_.receive(sender, received(sender, shape_.rank), 1); });
        for_ranks_of(to_node(turn), 1, [&](std::int32_t receiver) {
            steps_.send(receiver, sent(shape_.exchange, shape_.rank, receiver), 1);
        });
    }
    // Calls use(rank) for the ranks of a node, beginning with this one's like and going in that direction.
    template <class Use>
    void for_ranks_of(std::int32_t node, std::int32_t direction, Use use) const {
        const std::int32_t size = nodes_.size_of(node), like = nodes_.index_on_node() % size;
        for (std::int32_t i = 0; i < size; ++i)
            use(nodes_.ranks_of(node)[base::index((like + size + direction * i) % size)]);
    }

    const Shape& shape_;
    const Nodes nodes_;
    const std::int32_t turns_, window_;
    schedule::Builder steps_;
    std::int32_t started_ = 0, under_way_ = 0;  // turns, messages
};

}  // namespace

schedule::Schedule make_split(const Shape& shape) { return SplitScheme(shape).take(); }

}  // namespace coco::algorithms
