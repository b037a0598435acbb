// SPDX-License-Identifier: BSD-3-Clause
//
// A call of one simulated rank, for lib/exec/walk.h: messages are SMPI's, copies and flags cost what
// World::costs says. A rank's own clock may run ahead of SimGrid's; it sleeps the difference before it talks
// to MPI, so that a thousand copies are one event. Flags carry the time at which they were raised.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "world.h"

namespace simulate {

class View {
  public:
    static constexpr bool kRows = false;
    using Place = coco::schedule::Place;

    View(World& world, int self) : world_(world), self_(self), now_(simgrid::s4u::Engine::get_clock()) {}

    void copy(Place source, Place target) { copy_run(source, target, 1); }
    void copy_run(Place source, Place target, std::int32_t blocks) {
        if (source == target) return;
        std::int64_t bytes = blocks * world_.block_bytes;
        now_ += world_.costs.copy_s + static_cast<double>(bytes) * world_.costs.byte_s;
        if (world_.moves) std::memcpy(at(target), at(source), static_cast<std::size_t>(bytes));
    }

    void wait(std::int32_t peer, coco::schedule::Milestone milestone) {
        Rank& me = world_.rank[static_cast<std::size_t>(self_)];
        double raised = world_.rank[static_cast<std::size_t>(peer)].wait(me, milestone);
        now_ = std::max(now_, raised + world_.costs.flag_s);
    }
    void raise(coco::schedule::Milestone milestone) {
        now_ += world_.costs.raise_s;
        world_.rank[static_cast<std::size_t>(self_)].raise(milestone, now_);
    }

    void send(std::int32_t to, Place first, std::int32_t blocks) {
        catch_up();
        std::int64_t bytes = blocks * world_.block_bytes;
        MPI_Isend(at(first), static_cast<int>(bytes), MPI_BYTE, to, 0, MPI_COMM_WORLD,
                  &requests_.emplace_back());
        ++world_.messages;
        world_.message_bytes += bytes;
        now_ = std::max(now_, simgrid::s4u::Engine::get_clock());
    }
    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        catch_up();
        MPI_Irecv(at(first), static_cast<int>(blocks * world_.block_bytes), MPI_BYTE, from, 0, MPI_COMM_WORLD,
                  &requests_.emplace_back());
    }
    void complete(std::int32_t left) {
        auto gone = std::ssize(requests_) - left;
        if (gone <= 0) return;
        catch_up();
        MPI_Waitall(static_cast<int>(gone), requests_.data(), MPI_STATUSES_IGNORE);
        requests_.erase(requests_.begin(), requests_.begin() + gone);
        now_ = simgrid::s4u::Engine::get_clock();
    }

    // SimGrid's clock comes to this rank's.
    void catch_up() {
        double behind = now_ - simgrid::s4u::Engine::get_clock();
        if (behind > 0) simgrid::s4u::this_actor::sleep_for(behind);
    }
    double now() const { return now_; }
    // After a call of MPI's that was not made here.
    void look_at_clock() { now_ = std::max(now_, simgrid::s4u::Engine::get_clock()); }

    std::byte* at(Place place) {
        if (!world_.moves) return world_.any.data();
        auto& areas = world_.rank[static_cast<std::size_t>(place.owner)].areas;
        return areas.of[static_cast<int>(place.area)].get() + place.index * world_.block_bytes;
    }

  private:
    World& world_;
    const int self_;
    double now_;
    std::vector<MPI_Request> requests_;
};

}  // namespace simulate
