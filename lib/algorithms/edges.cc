// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/edges.h"

#include <set>

namespace coco::algorithms {
namespace {

using schedule::Area;
using schedule::Edge;
using schedule::kArrived;
using schedule::kDone;
using schedule::Place;

class Walk {
  public:
    explicit Walk(const Shape& shape)
        : shape_(shape), personal_(shape.exchange == Exchange::alltoall), near_(*shape.neighborhood) {}

    schedule::Schedule copy() {
        receive_from_afar();
        steps_.raise(kArrived);
        send_afar();
        for (const Edge& edge : shape_.share->edges) {
            await_arrival(edge.sender);
            await_arrival(edge.receiver);
            steps_.copy({edge.sender, Area::send, block_of(edge.sent)},
                        {edge.receiver, Area::recv, edge.received});
        }
        complete();
        steps_.raise(kDone);
        for (std::int32_t rank : shape_.share->touching) steps_.wait(rank, kDone);
        return steps_.take();
    }

    schedule::Schedule stage() {
        receive_from_afar();
        if (!shape_.share->touching.empty()) fill_scratch();
        steps_.raise(kArrived);
        send_afar();
        for (const Edge& edge : shape_.share->edges) {
            await_arrival(edge.sender);
            Area from = edge.sender == shape_.rank ? Area::send : Area::scratch;
            steps_.copy({edge.sender, from, block_of(edge.sent)}, {edge.receiver, Area::recv, edge.received});
        }
        complete();
        return steps_.raise(kDone).take();
    }

  private:
    std::int32_t block_of(std::int32_t sent) const { return personal_ ? sent : 0; }
    bool is_afar(std::int32_t rank) const {
        return rank >= 0 && shape_.map->node[static_cast<std::size_t>(rank)] !=
                                shape_.map->node[static_cast<std::size_t>(shape_.rank)];
    }

    // All at once: the ranks of a graph have no order in which none would wait for another's window.
    void receive_from_afar() {
        for (const Edge& edge : near_.incoming)
            if (is_afar(edge.sender)) {
                steps_.receive(edge.sender, {shape_.rank, Area::recv, edge.received}, 1);
                messages_ = true;
            }
    }
    void send_afar() {
        for (std::int32_t i = 0; i < near_.send_blocks(); ++i)
            if (std::int32_t to = near_.destinations[static_cast<std::size_t>(i)]; is_afar(to)) {
                steps_.send(to, {shape_.rank, Area::send, block_of(i)}, 1);
                messages_ = true;
            }
    }
    void complete() {
        if (messages_) steps_.complete();
    }

    // The blocks for ranks of the node, each where it is in the send area; an allgather's one.
    void fill_scratch() {
        steps_.scratch(personal_ ? near_.send_blocks() : 1);
        for (std::int32_t i = 0; i < near_.send_blocks(); ++i) {
            std::int32_t to = near_.destinations[static_cast<std::size_t>(i)];
            if (to < 0 || to == shape_.rank || is_afar(to)) continue;
            steps_.copy({shape_.rank, Area::send, block_of(i)}, {shape_.rank, Area::scratch, block_of(i)});
            if (!personal_) return;
        }
    }

    void await_arrival(std::int32_t rank) {
        if (rank != shape_.rank && arrived_.insert(rank).second) steps_.wait(rank, kArrived);
    }

    const Shape& shape_;
    const bool personal_;
    const schedule::Neighborhood& near_;
    schedule::Builder steps_;
    bool messages_ = false;
    std::set<std::int32_t> arrived_;
};

}  // namespace

schedule::Schedule copy_edges(const Shape& shape) { return Walk(shape).copy(); }
schedule::Schedule stage_edges(const Shape& shape) { return Walk(shape).stage(); }

}  // namespace coco::algorithms
