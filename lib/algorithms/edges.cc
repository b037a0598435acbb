// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/edges.h"

#include "base/check.h"
#include "base/index.h"

namespace coco::algorithms {

using schedule::Area;
using schedule::Edge;
using schedule::kArrived;
using schedule::kDone;

bool EdgeWalk::is_on_other_node(std::int32_t rank) const {
    return rank >= 0 && shape_.map->node[base::index(rank)] != shape_.map->node[base::index(shape_.rank)];
}

void EdgeWalk::receive_from_other_nodes() {
    for (const Edge& edge : neighborhood_.incoming)
        if (is_on_other_node(edge.sender))
            steps.receive(edge.sender, {shape_.rank, Area::recv, edge.received}, 1);
}

void EdgeWalk::send_to_other_nodes() {
    for (std::int32_t i = 0; i < neighborhood_.send_blocks(); ++i)
        if (std::int32_t to = neighborhood_.destinations[base::index(i)]; is_on_other_node(to))
            steps.send(to, {shape_.rank, Area::send, block_of(i)}, 1);
}

void EdgeWalk::fill_scratch() {
    if (shape_.share->touching.empty()) return;
    steps.scratch(send_extent());
    for (std::int32_t i = 0; i < neighborhood_.send_blocks(); ++i) {
        std::int32_t to = neighborhood_.destinations[base::index(i)];
        if (to < 0 || to == shape_.rank || is_on_other_node(to)) continue;
        steps.copy({shape_.rank, Area::send, block_of(i)}, {shape_.rank, Area::scratch, block_of(i)});
        if (!personal_) return;
    }
}

void EdgeWalk::copy_share() {
    for (const Edge& edge : shape_.share->edges) {
        COCO_CHECK(!is_on_other_node(edge.sender) && !is_on_other_node(edge.receiver),
                   "a rank copies edges within its node");
        await_arrival(edge.sender);
        await_arrival(edge.receiver);
        steps.copy({edge.sender, Area::send, block_of(edge.sent)},
                   {edge.receiver, Area::recv, edge.received});
    }
}

void EdgeWalk::copy_staged_share() {
    for (const Edge& edge : shape_.share->edges) {
        COCO_CHECK(edge.receiver == shape_.rank, "what is staged is copied by its receiver");
        COCO_CHECK(!is_on_other_node(edge.sender), "what is staged lies on the same node");
        await_arrival(edge.sender);
        Area from = edge.sender == shape_.rank ? Area::send : Area::scratch;
        steps.copy({edge.sender, from, block_of(edge.sent)}, {edge.receiver, Area::recv, edge.received});
    }
}

void EdgeWalk::await_arrival(std::int32_t rank) {
    if (rank != shape_.rank && arrived_.insert(rank).second) steps.wait(rank, kArrived);
}

schedule::Schedule copy_edges(const Shape& shape) {
    COCO_CHECK(shape.neighborhood != nullptr && shape.share != nullptr,
               "a schedule of neighbours has a neighbourhood and a share");
    EdgeWalk walk(shape);
    walk.receive_from_other_nodes();
    walk.steps.raise(kArrived);
    walk.send_to_other_nodes();
    walk.copy_share();
    walk.steps.complete();
    walk.steps.raise(kDone);
    for (std::int32_t rank : shape.share->touching) {
        COCO_CHECK(rank != shape.rank, "a rank does not wait for itself");
        walk.steps.wait(rank, kDone);
    }
    return walk.steps.take();
}

schedule::Schedule stage_edges(const Shape& shape) {
    COCO_CHECK(shape.neighborhood != nullptr && shape.share != nullptr,
               "a schedule of neighbours has a neighbourhood and a share");
    EdgeWalk walk(shape);
    walk.receive_from_other_nodes();
    walk.fill_scratch();
    walk.steps.raise(kArrived);
    walk.send_to_other_nodes();
    walk.copy_staged_share();
    walk.steps.complete();
    return walk.steps.raise(kDone).take();
}

}  // namespace coco::algorithms
