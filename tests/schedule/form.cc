// SPDX-License-Identifier: BSD-3-Clause
#include "form.h"

#include <algorithm>

namespace coco::simulator {
namespace {

using algorithms::Exchange;
using schedule::Act;
using schedule::Area;
using schedule::kDone;
using schedule::Place;
using schedule::Step;

bool raises(const schedule::Schedule& schedule, schedule::Milestone milestone) {
    return std::any_of(schedule.steps.begin(), schedule.steps.end(),
                       [&](const Step& s) { return s.act == Act::raise && s.milestone == milestone; });
}

class Form {
  public:
    Form(const Call& call, const topology::NodeMap& map, std::int32_t rank)
        : call_(call), map_(map), rank_(rank) {}

    std::string check() {
        for (const Step& step : of(rank_).steps) {
            std::string fault = step.act == Act::copy    ? copy(step)
                                : step.act == Act::raise ? raise(step)
                                                         : wait(step);
            if (!fault.empty()) return fault;
        }
        return last_ == std::int64_t{kDone} ? "" : "does not raise kDone";
    }

  private:
    const schedule::Schedule& of(std::int32_t rank) const {
        return call_.schedules[static_cast<std::size_t>(rank)];
    }
    std::int32_t node(std::int32_t rank) const { return map_.node[static_cast<std::size_t>(rank)]; }
    bool exists(Place place) const {
        return place.owner >= 0 && place.owner < map_.ranks() && place.index >= 0 &&
               place.index < extent(call_, place.owner, place.area);
    }

    std::string copy(const Step& step) const {
        if (last_ == std::int64_t{kDone}) return "copies after kDone";
        for (Place place : {step.source(), step.target()}) {
            if (!exists(place)) return "touches " + to_text(place) + ", which does not exist";
            if (node(place.owner) != node(rank_)) return "touches " + to_text(place) + " on another node";
        }
        if (step.target_area == Area::send) return "writes to a send area";
        if (!call_.may_read_peer_send && step.source_area == Area::send && step.source_owner != rank_)
            return "reads a peer's send area, against its registry row";
        if (!call_.may_write_peer_recv && step.target_area == Area::recv && step.target_owner != rank_)
            return "writes a peer's recv area, against its registry row";
        return "";
    }
    std::string raise(const Step& step) {
        if (std::int64_t{step.milestone} <= last_) return "raises milestones out of order";
        last_ = step.milestone;
        return "";
    }
    std::string wait(const Step& step) const {
        if (step.source_owner == rank_) return "waits for itself";
        if (step.source_owner < 0 || step.source_owner >= map_.ranks())
            return "waits for a rank that does not exist";
        if (last_ == std::int64_t{kDone} && step.milestone != kDone)
            return "waits after kDone for less than kDone";
        if (!raises(of(step.source_owner), step.milestone))
            return "waits for milestone " + std::to_string(step.milestone) + " of rank " +
                   std::to_string(step.source_owner) + ", which never raises it";
        return "";
    }

    const Call& call_;
    const topology::NodeMap& map_;
    std::int32_t rank_;
    std::int64_t last_ = -1;  // milestone
};

}  // namespace

std::int32_t extent(const Call& call, std::int32_t rank, Area area) {
    auto ranks = static_cast<std::int32_t>(call.schedules.size());
    if (area == Area::scratch) return call.schedules[static_cast<std::size_t>(rank)].scratch_blocks;
    if (call.exchange == Exchange::bcast)
        return (area == Area::send) == (rank == call.root) ? call.segments : 0;
    return area == Area::send && call.exchange == Exchange::allgather ? 1 : ranks;
}

std::string to_text(Place place) {
    constexpr const char* kNames[schedule::kAreas] = {"send", "recv", "scratch"};
    return std::string(kNames[static_cast<int>(place.area)]) + " " + std::to_string(place.index) +
           " of rank " + std::to_string(place.owner);
}

std::string check_form(const Call& call, const topology::NodeMap& map) {
    for (std::int32_t r = 0; r < map.ranks(); ++r) {
        std::string fault = Form(call, map, r).check();
        if (!fault.empty()) return "rank " + std::to_string(r) + " " + fault;
    }
    return "";
}

}  // namespace coco::simulator
