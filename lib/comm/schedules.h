// SPDX-License-Identifier: BSD-3-Clause
//
// The schedules of a rank of a communicator, each made at its first use. Called through Comm (comm.h), by
// exec. Thread safety: that of the communicator. Fails: without memory the job ends (heap/heap.h,
// t_undivided), as other ranks wait for this one.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/collectives.h"
#include "base/index.h"
#include "messages/scratch.h"
#include "schedule/schedule.h"
#include "topology/node_map.h"

namespace coco::comm {

// The key of a schedule: all that it depends on besides the communicator.
struct ScheduleKey {
    const algorithms::Algorithm* algorithm;
    algorithms::Exchange exchange;
    std::int32_t root;
    std::int32_t segments;
    algorithms::Parameters parameters = {};
    // For neighbor_* only; null for others.
    const schedule::Neighborhood* neighborhood = nullptr;
    const schedule::EdgeShare* share = nullptr;
    const schedule::Bundles* bundles = nullptr;
    const schedule::CombinedSends* combined_sends = nullptr;
    const schedule::CombinedReceives* combined_receives = nullptr;
    friend bool operator==(const ScheduleKey&, const ScheduleKey&) = default;
};

class Schedules {
  public:
    struct Kept {
        ScheduleKey key;
        std::unique_ptr<schedule::Schedule> schedule;
        // The block sizes for which all ranks have scratch, for each lane on which the schedule runs.
        struct Fits {
            messages::Fit plain = {}, sized = {};
        };
        std::vector<Fits> fits = {};
        Fits& fits_on(std::size_t lane_number) {
            if (fits.size() <= lane_number) fits.resize(lane_number + 1);
            return fits[lane_number];
        }
    };
    // Where the ranks are, and which one is this. The same in all calls.
    struct Seat {
        const topology::NodeMap& map;
        std::int32_t rank;
    };

    // Of an exchange: one for each algorithm, form, set of parameters and, among neighbours, graph. Kept
    // until the communicator ends: all ranks must have the same Fits there, by which they know when to ask
    // each other.
    Kept& of_exchange(const ScheduleKey& key, const Seat& seat);
    // The same for an exchange on one node, whose key is these three alone (Parameters::width). Every call of
    // such an exchange asks for it.
    const schedule::Schedule& of_exchange_on_node(const algorithms::Algorithm& algorithm, std::int32_t width,
                                                  algorithms::Exchange exchange, const Seat& seat) {
        Last& last = last_on_node_[base::index(exchange)];
        if (last.algorithm != &algorithm || last.width != width) [[unlikely]]
            last = {&algorithm, width,
                    of_exchange({&algorithm, exchange, 0, 1, {.width = width}}, seat).schedule.get()};
        return *last.schedule;
    }
    // Of a bcast. Each root and each number of segments has a schedule of its own, so these are kept in a
    // direct-mapped cache: a new key evicts the schedule in its place. A rank may evict alone, because it
    // makes the schedule again from its shape and asks no other rank.
    std::shared_ptr<const schedule::Schedule> of_bcast(const ScheduleKey& key, const Seat& seat);

    // For state that is used for another communicator: its graphs are gone, and so is its scratch.
    void forget_neighbors();
    void forget_fits();

  private:
    struct KeptBcast {
        ScheduleKey key;
        std::shared_ptr<const schedule::Schedule> schedule;
    };
    // What of_exchange_on_node() gave last.
    struct Last {
        const algorithms::Algorithm* algorithm = nullptr;
        std::int32_t width = 0;
        const schedule::Schedule* schedule = nullptr;
    };

    std::vector<Kept> all_;
    std::size_t last_ = 0;  // the index of the one asked for last
    Last last_on_node_[base::kExchanges];
    std::vector<KeptBcast> bcasts_;  // by place
};

}  // namespace coco::comm
