// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a communicator's ranks outnumber the CPUs that they may use, so that a rank that spins keeps
// another one from running: on one of its hosts, or on any. Called while a communicator is set up. Thread
// safety: none. Never fails.
#pragma once
#include <cstdint>
#include <unordered_map>

#include "os/probe.h"

namespace coco::comm {

// The CPUs that a rank may use, as it tells others of them; beyond so many they are folded, so that ranks
// then seem to have fewer. Plain data.
struct FoldedCpus {
    static constexpr int kWords = 8;
    std::uint64_t words[kWords];
    std::int32_t quota;  // whole CPUs' time that the control group grants; 0: no limit
};
FoldedCpus fold(const os::Cpus& cpus);
// Whether the launcher started more ranks on this node than it has CPUs.
bool job_crowds_node();

class Crowding {
  public:
    // Counts a rank of the communicator. host: where it runs. job_crowds: job_crowds_node() of that rank.
    void add(std::uint64_t host, const FoldedCpus& cpus, bool job_crowds);
    bool is_crowded(std::uint64_t host) const;
    // On any host. The same on all ranks that have counted the same ranks.
    bool is_any_crowded() const;

  private:
    struct Host {
        std::int32_t ranks = 0;
        bool job_crowds = false;
        FoldedCpus cpus = {};  // of all of its ranks
        bool is_crowded() const;
    };
    std::unordered_map<std::uint64_t, Host> hosts_;
};

}  // namespace coco::comm
