// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "exec/walk.h"
#include "form.h"
#include "view.h"

namespace simulate {
namespace {

using coco::algorithms::Exchange;
using coco::schedule::Area;

// Neighbor_alltoall and Neighbor_allgather along World::graph. What a rank shows its mates is its send area,
// or its scratch, as its schedule says.
class NeighborForm final : public Form {
  public:
    using Form::Form;

    void prepare_world(const Plan& plan, double most_moved_bytes) override {
        std::int64_t all = 0, most = 0;
        for (std::int32_t r = 0; r < world_.ranks; ++r) {
            std::int64_t blocks = 0;
            for (Area area : {Area::send, Area::recv, Area::scratch}) blocks += blocks_of(r, area);
            all += blocks;
            most = std::max(most, blocks);
        }
        world_.moves =
            !plan.messages_alone && static_cast<double>(all * world_.block_bytes) <= most_moved_bytes;
        world_.any =
            std::vector<std::byte>(world_.moves ? 0 : static_cast<std::size_t>(most * world_.block_bytes));
    }

    void prepare(const Plan&) override {
        for (Area area : {Area::send, Area::recv, Area::scratch})
            own().areas.make(area, world_.moves ? blocks_of(self_, area) * world_.block_bytes : 0);
        if (world_.moves) fill();
    }

    void perform(const Plan& plan) override {
        View view(world_, self_);
        if (plan.messages_alone)
            view.work(near(self_).send_blocks() * world_.costs.send_s +
                      std::ssize(near(self_).incoming) * world_.costs.receive_s);
        coco::exec::walk(plan.first, view);
        view.finish();
    }

    std::int64_t check(const Plan& plan) override {
        if (!world_.moves || plan.messages_alone) return 0;
        std::int64_t wrong = 0;
        for (const auto& edge : near(self_).incoming) {
            const std::byte* at = own().areas.at(Area::recv) + edge.received * world_.block_bytes;
            bool right = true;
            for (std::int64_t i = 0; i < world_.block_bytes; ++i)
                right &= *at++ == content(edge.sender, personal() ? edge.sent : 0, i);
            wrong += !right;
        }
        return wrong;
    }

  private:
    bool personal() const { return is(Exchange::alltoall); }
    const coco::schedule::Neighborhood& near(std::int32_t rank) const {
        return world_.graph->near[static_cast<std::size_t>(rank)];
    }
    std::int64_t blocks_of(std::int32_t rank, Area area) const {
        if (area == Area::scratch) return world_.rank[static_cast<std::size_t>(rank)].scratch_blocks;
        if (area == Area::recv) return near(rank).recv_blocks;
        return personal() ? near(rank).send_blocks() : 1;
    }
    void fill() {
        std::byte* to = own().areas.at(Area::send);
        for (std::int32_t b = 0; b < blocks_of(self_, Area::send); ++b)
            for (std::int64_t i = 0; i < world_.block_bytes; ++i) *to++ = content(self_, b, i);
        std::fill_n(own().areas.at(Area::recv), blocks_of(self_, Area::recv) * world_.block_bytes,
                    std::byte{0xEE});
    }
};

}  // namespace

std::unique_ptr<Form> make_neighbor_form(World& world, int self) {
    return std::make_unique<NeighborForm>(world, self);
}

}  // namespace simulate
