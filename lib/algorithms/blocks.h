// SPDX-License-Identifier: BSD-3-Clause
//
// The blocks of an all-to-all exchange as places, so that each algorithm has the same code for alltoall and
// allgather. Thread safety: pure functions.
#pragma once
#include "algorithms/algorithm.h"
#include "base/check.h"

namespace coco::algorithms {

// The block that `sender` owes `receiver`. Requires (all here): the exchange is not bcast.
inline schedule::Place sent(Exchange exchange, std::int32_t sender, std::int32_t receiver) {
    COCO_CHECK(exchange != Exchange::bcast, "a bcast has segments in place of blocks");
    return {sender, schedule::Area::send, exchange == Exchange::alltoall ? receiver : 0};
}
// Where the block from `sender` ends on `receiver`.
inline schedule::Place received(std::int32_t sender, std::int32_t receiver) {
    return {receiver, schedule::Area::recv, sender};
}
inline void copy_block(schedule::Builder& steps, Exchange exchange, std::int32_t sender,
                       std::int32_t receiver) {
    steps.copy(sent(exchange, sender, receiver), received(sender, receiver));
}

}  // namespace coco::algorithms
