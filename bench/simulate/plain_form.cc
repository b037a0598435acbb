// SPDX-License-Identifier: BSD-3-Clause
#include "exec/walk.h"
#include "form.h"
#include "view.h"

namespace simulate {
namespace {

using coco::algorithms::Exchange;
using coco::schedule::Area;

class PlainForm final : public Form {
  public:
    using Form::Form;

    void prepare_world(const Plan& plan, double most_moved_bytes) override {
        auto all =
            static_cast<double>(blocks_of(Area::send) + blocks_of(Area::recv) + plan.first.scratch_blocks);
        world_.moves = all * static_cast<double>(world_.block_bytes) * world_.ranks <= most_moved_bytes;
        std::int64_t most = std::max<std::int64_t>(plan.first.scratch_blocks, world_.ranks) + world_.ranks;
        world_.any =
            std::vector<std::byte>(world_.moves ? 0 : static_cast<std::size_t>(most * world_.block_bytes));
    }

    void prepare(const Plan& plan) override {
        for (Area area : {Area::send, Area::recv, Area::scratch}) {
            std::int64_t blocks = area == Area::scratch ? plan.first.scratch_blocks : blocks_of(area);
            own().areas.make(area, world_.moves ? blocks * world_.block_bytes : 0);
        }
        if (world_.moves) fill();
    }

    void perform(const Plan& plan) override {
        View view(world_, self_);
        if (plan.mpi) {
            whole();
            view.look_at_clock();
        } else {
            coco::exec::walk(plan.first, view);
            if (plan.inner) exchange_bundles(view, plan.leaders);
            coco::exec::walk(plan.second, view);
        }
        view.finish();
    }

    std::int64_t check(const Plan&) override {
        if (!world_.moves) return 0;
        const std::byte* at = buffer(Area::recv);
        int receiver = is(Exchange::alltoall) ? self_ : 0;
        std::int64_t wrong = 0;
        for (int r = 0; r < world_.ranks; ++r) {
            bool right = true;
            for (std::int64_t i = 0; i < world_.block_bytes; ++i) right &= *at++ == content(r, receiver, i);
            wrong += !right;
        }
        return wrong;
    }

  private:
    std::int64_t blocks_of(Area area) const {
        return area == Area::send && is(Exchange::allgather) ? 1 : world_.ranks;
    }
    void fill() {
        std::byte* to = buffer(Area::send);
        for (int r = 0; r < blocks_of(Area::send); ++r)
            for (std::int64_t i = 0; i < world_.block_bytes; ++i) *to++ = content(self_, r, i);
        std::memset(buffer(Area::recv), 0xEE, static_cast<std::size_t>(world_.ranks * world_.block_bytes));
    }
    void whole() {
        auto* call = is(Exchange::alltoall) ? MPI_Alltoall : MPI_Allgather;
        int bytes = static_cast<int>(world_.block_bytes);
        call(buffer(Area::send), bytes, MPI_BYTE, buffer(Area::recv), bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
    void exchange_bundles(View& view, MPI_Comm leaders) {
        if (self_ % world_.per_node != 0) return;
        view.catch_up();
        std::int64_t bundle = world_.per_node * world_.per_node * world_.block_bytes;
        std::byte* out = buffer(Area::scratch);
        MPI_Alltoall(out, static_cast<int>(bundle), MPI_BYTE, out + world_.map.nodes() * bundle,
                     static_cast<int>(bundle), MPI_BYTE, leaders);
        view.look_at_clock();
    }
    std::byte* buffer(Area area) {
        if (!world_.moves)  // SMPI sees two
            return world_.any.data() + (area == Area::recv ? world_.ranks * world_.block_bytes : 0);
        return own().areas.at(area);
    }
};

}  // namespace

std::unique_ptr<Form> make_plain_form(World& world, int self) {
    return std::make_unique<PlainForm>(world, self);
}

}  // namespace simulate
