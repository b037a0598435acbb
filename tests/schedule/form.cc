// SPDX-License-Identifier: BSD-3-Clause
#include "form.h"

#include <algorithm>
#include <set>

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
            std::string fault = whole(step);
            bool parts = step.act == Act::copy || step.act == Act::wait;
            for (std::int32_t i = 0; parts && i < step.count && fault.empty(); ++i)
                fault = step.act == Act::copy ? copy(step, i) : wait(step.awaited(i), step.milestone);
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

    std::string whole(const Step& step) {
        if (step.act == Act::raise) return raise(step);
        if (step.act == Act::complete) return complete(step);
        if (step.count < 1) return "has a step of nothing";
        return step.act == Act::send || step.act == Act::receive ? message(step) : "";
    }

    std::string message(const Step& step) {
        if (last_ == std::int64_t{kDone}) return "starts a message after kDone";
        if (step.peer() == rank_) return "sends to itself";
        if (step.peer() < 0 || step.peer() >= map_.ranks())
            return "has a message with a rank that does not exist";
        const Place first = step.first(rank_);
        std::int32_t owner = step.act == Act::send ? step.source_owner : step.target_owner;
        if (owner != rank_) return "has a message in an area that is not its own";
        if (!exists(first) || !exists({rank_, first.area, first.index + step.count - 1}))
            return "has a message of " + std::to_string(step.count) + " blocks from " + to_text(first) +
                   " on, which do not exist";
        if (step.act == Act::receive && first.area == Area::send) return "receives into a send area";
        if (++under_way_ > kMostUnderWay && call_.neighborhoods.empty())
            return "has too many messages under way";
        return "";
    }
    std::string complete(const Step& step) {
        if (step.count < 0 || step.count >= under_way_) return "completes what is not under way";
        under_way_ = step.count;
        return "";
    }

    std::string copy(const Step& step, std::int32_t i) {
        if (last_ == std::int64_t{kDone}) return "copies after kDone";
        const Place source = step.source(i), target = step.target(i);
        if (step.after_source && !step.after_target && source.owner == target.owner)
            return "waits for the owner of its target too late";
        std::string fault = step.after_source ? wait(source.owner, schedule::kArrived) : "";
        if (fault.empty() && step.after_target && i == 0) fault = wait(target.owner, schedule::kArrived);
        return fault.empty() ? copy(source, target) : fault;
    }
    std::string copy(Place source, Place target) const {
        for (Place place : {source, target}) {
            if (!exists(place)) return "touches " + to_text(place) + ", which does not exist";
            if (node(place.owner) != node(rank_)) return "touches " + to_text(place) + " on another node";
            if (place.owner != rank_ && !met_.contains(place.owner))
                return "touches " + to_text(place) + " without having waited for its arrival";
        }
        if (target.area == Area::send) return "writes to a send area";
        if (!call_.may_read_peer_send && source.area == Area::send && source.owner != rank_)
            return "reads a peer's send area, against its registry row";
        if (!call_.may_write_peer_recv && target.area == Area::recv && target.owner != rank_)
            return "writes a peer's recv area, against its registry row";
        return "";
    }
    std::string raise(const Step& step) {
        if (std::int64_t{step.milestone} <= last_) return "raises milestones out of order";
        if (step.milestone == kDone && under_way_ != 0) return "leaves messages under way";
        last_ = step.milestone;
        return "";
    }
    std::string wait(std::int32_t rank, schedule::Milestone milestone) {
        if (milestone == schedule::kArrived) met_.insert(rank);
        if (rank == rank_) return "waits for itself";
        if (rank < 0 || rank >= map_.ranks()) return "waits for a rank that does not exist";
        if (node(rank) != node(rank_)) return "waits for a rank of another node";
        if (last_ == std::int64_t{kDone} && milestone != kDone)
            return "waits after kDone for less than kDone";
        if (!raises(of(rank), milestone))
            return "waits for milestone " + std::to_string(milestone) + " of rank " + std::to_string(rank) +
                   ", which never raises it";
        return "";
    }

    const Call& call_;
    const topology::NodeMap& map_;
    std::int32_t rank_;
    std::int64_t last_ = -1;      // milestone
    std::set<std::int32_t> met_;  // ranks whose arrival was waited for
    // Messages: of a window, or of a round of about sqrt(P) both ways. Neighbours have no windows.
    static constexpr std::int32_t kMostUnderWay = 64;
    std::int32_t under_way_ = 0;
};

}  // namespace

std::int32_t extent(const Call& call, std::int32_t rank, Area area) {
    auto ranks = static_cast<std::int32_t>(call.schedules.size());
    if (area == Area::scratch) return call.schedules[static_cast<std::size_t>(rank)].scratch_blocks;
    if (!call.neighborhoods.empty()) {
        const auto& near = call.neighborhoods[static_cast<std::size_t>(rank)];
        if (area == Area::recv) return near.recv_blocks;
        return call.exchange == Exchange::allgather ? 1 : near.send_blocks();
    }
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
