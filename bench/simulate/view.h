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

// The common part of all forms' views.
class ClockedView {
  public:
    static constexpr bool kRows = false;
    using Place = coco::schedule::Place;

    ClockedView(World& world, int self)
        : world_(world), self_(self), now_(simgrid::s4u::Engine::get_clock()) {}

    void wait(std::int32_t peer, coco::schedule::Milestone milestone) {
        if (world_.cpus) catch_up();
        double raised = rank(peer).wait(rank(self_), milestone);
        now_ = std::max(now_, raised + world_.costs.flag_s);
    }
    void raise(coco::schedule::Milestone milestone) {
        now_ += world_.costs.raise_s;
        if (world_.cpus) catch_up();  // whose turn it is, is known then
        rank(self_).raise(milestone, now_);
    }

    void work(double seconds) { now_ += seconds; }

    // SimGrid's clock comes to this rank's.
    void catch_up() {
        double behind = now_ - simgrid::s4u::Engine::get_clock();
        if (behind <= 0) return;
        simgrid::s4u::this_actor::sleep_for(world_.cpus ? world_.cpus->run(behind) : behind);
        look_at_clock();
    }
    // After a call of MPI's.
    void look_at_clock() { now_ = std::max(now_, simgrid::s4u::Engine::get_clock()); }
    // The call is over.
    void finish() {
        catch_up();
        world_.last_end = std::max(world_.last_end, now_);
    }

  protected:
    Rank& rank(std::int32_t number) { return world_.rank[static_cast<std::size_t>(number)]; }
    void charge_copy(std::int64_t bytes) {
        now_ += world_.costs.copy_s + static_cast<double>(bytes) * world_.costs.byte_s;
    }
    void start_send(std::int32_t to, const void* from, std::int64_t bytes, int tag, MPI_Request& request) {
        catch_up();
        MPI_Isend(from, static_cast<int>(bytes), MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
        ++world_.messages;
        world_.message_bytes += bytes;
        look_at_clock();
    }
    void start_receive(std::int32_t from, void* to, std::int64_t bytes, int tag, MPI_Request& request) {
        catch_up();
        MPI_Irecv(to, static_cast<int>(bytes), MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
    }
    void await(MPI_Request* requests, std::ptrdiff_t count) {
        catch_up();
        MPI_Waitall(static_cast<int>(count), requests, MPI_STATUSES_IGNORE);
        look_at_clock();
    }

    World& world_;
    const int self_;
    double now_;
};

// A view that completes messages in the order of their start.
class QueueView : public ClockedView {
  public:
    using ClockedView::ClockedView;

    void complete(std::int32_t left) {
        auto gone = std::ssize(requests_) - left;
        if (gone <= 0) return;
        await(requests_.data(), gone);
        requests_.erase(requests_.begin(), requests_.begin() + gone);
    }

  protected:
    std::vector<MPI_Request> requests_;
};

// Plain forms: alltoall and allgather.
class View : public QueueView {
  public:
    using QueueView::QueueView;

    void copy(Place source, Place target) { copy_run(source, target, 1); }
    void copy_run(Place source, Place target, std::int32_t blocks) {
        if (source == target) return;
        std::int64_t bytes = blocks * world_.block_bytes;
        charge_copy(bytes);
        if (world_.moves) std::memcpy(at(target), at(source), static_cast<std::size_t>(bytes));
    }
    void send(std::int32_t to, Place first, std::int32_t blocks) {
        start_send(to, at(first), blocks * world_.block_bytes, 0, requests_.emplace_back());
    }
    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        start_receive(from, at(first), blocks * world_.block_bytes, 0, requests_.emplace_back());
    }

  private:
    std::byte* at(Place place) {
        if (!world_.moves) return world_.any.data();
        return rank(place.owner).areas.at(place.area) + place.index * world_.block_bytes;
    }
};

}  // namespace simulate
