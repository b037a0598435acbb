// SPDX-License-Identifier: BSD-3-Clause
//
// An exchange by messages among all ranks, each for itself.
#include <numeric>
#include <utility>

#include "algorithms/blocks.h"
#include "algorithms/exchange.h"
#include "base/check.h"
#include "base/index.h"

namespace coco::algorithms {
namespace {

using schedule::Area;
using schedule::Place;

class FlatCourier final : public Courier {
  public:
    explicit FlatCourier(const Shape& shape) : shape_(shape) {}

    Place outgoing(std::int32_t to) override { return sent(shape_.exchange, shape_.rank, to); }
    Place wanted(std::int32_t from) override { return received(from, shape_.rank); }
    bool is_ring() const override { return false; }
    Place new_scratch(std::int32_t blocks) override {
        COCO_CHECK(blocks > 0, "what is laid into scratch has blocks");
        return {shape_.rank, Area::scratch, std::exchange(scratch_, scratch_ + blocks)};
    }
    void copy(Place source, Place target, std::int32_t blocks) override {
        for (std::int32_t i = 0; i < blocks; ++i) steps.copy(behind(source, i), behind(target, i));
    }
    void send(std::int32_t to, Place first, std::int32_t blocks) override { steps.send(to, first, blocks); }
    void receive(std::int32_t from, Place first, std::int32_t blocks) override {
        steps.receive(from, first, blocks);
    }
    void complete(std::int32_t left) override { steps.complete(left); }
    void arrived(std::int32_t from, Place at) override {
        COCO_CHECK(from != shape_.rank, "a bundle comes from another rank");
        ++arrived_;
        if (at != wanted(from)) steps.copy(at, wanted(from));
    }

    schedule::Schedule take() {
        COCO_CHECK(arrived_ == shape_.map->ranks() - 1, "a bundle comes from each other rank, once");
        return steps.scratch(scratch_).raise(schedule::kDone).take();
    }

    schedule::Builder steps;

  private:
    const Shape& shape_;
    std::int32_t scratch_ = 0, arrived_ = 0;
};

}  // namespace

schedule::Schedule make_flat(const Shape& shape, Inner inner) {
    COCO_CHECK(shape.rank >= 0 && shape.rank < shape.map->ranks(), "a schedule is for a rank of the map");
    COCO_CHECK(shape.neighborhood == nullptr, "neighbours do not exchange with all ranks");
    Participants all;
    all.rank.resize(base::index(shape.map->ranks()));
    std::iota(all.rank.begin(), all.rank.end(), 0);
    all.weight.assign(all.rank.size(), 1);
    all.readers = all.weight;
    all.me = shape.rank;
    all.personal = shape.exchange == Exchange::alltoall;
    FlatCourier courier(shape);
    copy_block(courier.steps, shape.exchange, shape.rank, shape.rank);
    exchange_by(inner, all, shape.parameters.radix, courier);
    return courier.take();
}

}  // namespace coco::algorithms
