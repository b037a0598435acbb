// SPDX-License-Identifier: BSD-3-Clause
#include "exec/walk.h"
#include "form.h"
#include "sized_view.h"

namespace simulate {
namespace {

class SizedForm final : public Form {
  public:
    using Form::Form;

    void prepare_world(const Plan&, double) override {
        world_.moves = false;
        // A message of all blocks.
        const std::int32_t blocks = 2 * world_.ranks * world_.per_node;
        world_.any = std::vector<std::byte>(SizedView::whole_format(world_.ranks).most_bytes(blocks) +
                                            static_cast<std::size_t>(blocks * world_.block_bytes));
    }

    void prepare(const Plan& plan) override {
        own().table.assign(static_cast<std::size_t>(plan.first.scratch_blocks), {});
        own().received.assign(static_cast<std::size_t>(world_.ranks), {});
        own().coming.clear();
        if (plan.mpi) count();
    }

    void perform(const Plan& plan) override {
        SizedView view(world_, self_, plan.first, plan.phases);
        if (plan.mpi) {
            whole();
            view.look_at_clock();
        } else {
            coco::exec::walk(plan.first, view);
            view.go_straight();
        }
        view.finish();
    }

    std::int64_t check(const Plan& plan) override {
        std::int64_t wrong = 0;
        for (std::int32_t r = 0; !plan.mpi && r < world_.ranks; ++r)
            wrong += own().received[static_cast<std::size_t>(r)] != Element{r, self_};
        return wrong;
    }

  private:
    struct Side {
        std::vector<int> counts, displacements;
        void add(std::int64_t bytes) {
            displacements.push_back(counts.empty() ? 0 : displacements.back() + counts.back());
            counts.push_back(static_cast<int>(bytes));
        }
    };

    void count() {
        send_ = recv_ = {};
        for (std::int32_t r = 0; r < world_.ranks; ++r) {
            send_.add(world_.bytes_of({self_, r}));
            recv_.add(world_.bytes_of({r, self_}));
        }
    }
    void whole() {
        MPI_Alltoallv(world_.any.data(), send_.counts.data(), send_.displacements.data(), MPI_BYTE,
                      world_.any.data() + world_.ranks * world_.block_bytes, recv_.counts.data(),
                      recv_.displacements.data(), MPI_BYTE, MPI_COMM_WORLD);
    }

    Side send_, recv_;
};

}  // namespace

std::unique_ptr<Form> make_sized_form(World& world, int self) {
    return std::make_unique<SizedForm>(world, self);
}

}  // namespace simulate
