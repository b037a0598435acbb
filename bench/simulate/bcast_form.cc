// SPDX-License-Identifier: BSD-3-Clause
#include "bcast_view.h"
#include "exec/walk.h"
#include "form.h"

namespace simulate {
namespace {

using coco::schedule::Area;
using coco::schedule::Schedule;

class BcastForm final : public Form {
  public:
    using Form::Form;

    void prepare_world(const Plan&, double most_moved_bytes) override {
        world_.moves = static_cast<double>(world_.block_bytes) * world_.ranks <= most_moved_bytes;
        world_.any = std::vector<std::byte>(world_.moves ? 0 : static_cast<std::size_t>(world_.block_bytes));
    }

    void prepare(const Plan& plan) override {
        cut(plan);
        std::int64_t bytes = world_.moves ? world_.block_bytes : 0;
        own().areas.make(Area::send, self_ == 0 ? bytes : 0);
        own().areas.make(Area::recv, self_ == 0 ? 0 : bytes);
        std::int64_t blocks = schedules_.empty() ? 0 : schedules_[0].scratch_blocks;
        own().areas.make(Area::scratch, world_.moves && blocks != 0 ? blocks * trains_[0].unit_bytes : 0);
        for (std::int64_t i = 0; i < bytes; ++i)
            buffer()[i] = self_ == 0 ? content(0, 0, i) : std::byte{0xEE};
    }

    void perform(const Plan& plan) override {
        if (plan.mpi) MPI_Bcast(buffer(), static_cast<int>(world_.block_bytes), MPI_BYTE, 0, MPI_COMM_WORLD);
        for (std::size_t i = 0; i < trains_.size(); ++i) {
            BcastView view(world_, self_, trains_[i], schedules_[i]);
            coco::exec::walk(schedules_[i], view);
            if (trains_[i].alias && i + 1 == trains_.size()) view.wait_for_readers();
            view.finish();
        }
        if (plan.mpi) ClockedView(world_, self_).finish();
    }

    std::int64_t check(const Plan&) override {
        if (!world_.moves) return 0;
        for (std::int64_t i = 0; i < world_.block_bytes; ++i)
            if (buffer()[i] != content(0, 0, i)) return 1;
        return 0;
    }

  private:
    // The buffer's trains of segments, and a schedule for each.
    void cut(const Plan& plan) {
        trains_.clear();
        schedules_.clear();
        if (plan.mpi) return;
        const std::int64_t unit = unit_bytes_for(plan.choice.parameters);
        const std::int64_t train = std::max<std::int64_t>(kTrain, world_.map.nodes()) * unit;
        for (std::int64_t at = 0; at < world_.block_bytes; at += train) {
            std::int64_t bytes = std::min(world_.block_bytes - at, train);
            trains_.push_back({std::ssize(trains_), at, bytes, unit, world_.block_bytes >= kAliasBytesMin});
            schedules_.push_back(
                schedule_of(plan.choice, static_cast<std::int32_t>((bytes + unit - 1) / unit)));
        }
    }
    // A scatter wants a part for each node.
    std::int64_t unit_bytes_for(const coco::algorithms::Parameters& parameters) const {
        auto wanted = static_cast<std::int64_t>(parameters.segment_bytes);
        std::int64_t unit = wanted != 0 ? wanted : kSegmentBytes;
        if (parameters.route == coco::algorithms::Route::scatter)
            unit = std::min(unit, world_.block_bytes / world_.map.nodes());
        unit = std::clamp<std::int64_t>((unit + 63) / 64 * 64, 1024, kSegmentBytesMax);
        return std::min(unit, world_.block_bytes);
    }
    Schedule schedule_of(const coco::policy::Choice& choice, std::int32_t segments) const {
        return choice.algorithm->make_schedule({.exchange = coco::algorithms::Exchange::bcast,
                                                .rank = self_,
                                                .map = &world_.map,
                                                .root = 0,
                                                .segments = segments,
                                                .parameters = choice.parameters});
    }
    std::byte* buffer() {
        return world_.moves ? own().areas.at(self_ == 0 ? Area::send : Area::recv) : world_.any.data();
    }

    std::vector<Train> trains_;
    std::vector<Schedule> schedules_;
};

}  // namespace

std::unique_ptr<Form> make_bcast_form(World& world, int self) {
    return std::make_unique<BcastForm>(world, self);
}

}  // namespace simulate
