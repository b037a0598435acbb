// SPDX-License-Identifier: BSD-3-Clause
//
// The common part of exchanges over several nodes whose blocks have sizes of their own, and whose ranks share
// scratch on a node: scratch is a table of elements, each where a block lies and how long it is. A copy from
// scratch to scratch moves an element alone. Thread safety: that of the lane.
#pragma once
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/index.h"
#include "exec/exchange_flight.h"
#include "exec/sized_messages.h"

namespace coco::exec {

class ElementFlight : public ExchangeFlight {
  public:
    static constexpr bool kRows = false;

  protected:
    using Element = messages::Element;

    // recv_blocks: the number of blocks that this rank receives.
    ElementFlight(const Order& order, std::int32_t recv_blocks)
        : ExchangeFlight(order), personal_(base::is_personal(order.call.common.collective)) {
        received_.resize(base::index(recv_blocks));
    }

    // Makes memory this rank's scratch: elements, from the last one's to the first's. Returns: what lies
    // behind them, from where mates know both.
    std::byte* begin_scratch(std::byte* memory, std::int32_t elements) {
        return row(schedule::Area::scratch, comm_.rank).base =
                   memory + sizeof(Element) * base::index(elements);
    }
    // An element of a rank of the node.
    Element& in_scratch(schedule::Place place) {
        COCO_CHECK_DEAR(place.area == schedule::Area::scratch && place.index >= 0, "elements lie in scratch");
        return reinterpret_cast<Element*>(row(schedule::Area::scratch, place.owner).base)[-1 - place.index];
    }
    // The element of a block of data of this rank's.
    Element own(const std::byte* data, std::uint64_t bytes, bool straight = false) const {
        return {channel_.offset_of(data), bytes, comm_.rank, straight, 0};
    }
    // The element of a block of the send buffer.
    Element own_block(std::int32_t index) const {
        COCO_CHECK_DEAR(base::index(index) < send_.blocks.size(),
                        "a block that is sent is one of the own blocks");
        const blocks::BlockAt& block = send_.blocks[base::index(index)];
        return own(base::displaced(send_.base, block.displacement_bytes), block.bytes);
    }
    const std::byte* data_of(const Element& element) const { return channel_.at(element.owner, element.at); }

    // Takes a block that is received: copies its data, unless that comes straight.
    void take(std::int32_t index, const Element& element) {
        COCO_CHECK_DEAR(base::index(index) < received_.size(), "a block that is taken is received");
        received_[base::index(index)] = element;
        if (element.straight != 0) return;
        const blocks::BlockAt& room = recv_.blocks[base::index(index)];
        outcome.truncated |= element.bytes > room.bytes;
        const std::uint64_t bytes = std::min(element.bytes, room.bytes);
        const std::byte* source = data_of(element);
        std::byte* target = base::displaced(recv_.base, room.displacement_bytes);
        if (bytes != 0 && source != target) blocks::copy_block(target, source, bytes);
    }

    const bool personal_;
    std::vector<Element>& received_ =
        lane_.post.received;  // by receive block; older than this call until taken
};

}  // namespace coco::exec
