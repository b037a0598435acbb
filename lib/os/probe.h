// SPDX-License-Identifier: BSD-3-Clause
//
// Where this process sits on the real machine, what its caches are, how many CPUs it may use; and machines
// that COCO_TOPOLOGY invents. Called in MPI_Init, and a few system calls. hwloc, which takes some 50 ms on
// some machines, reads descriptions of invented machines alone.
//
// Safety: any thread; not below malloc, not in signal handlers. The only file that knows hwloc
// (hwloc_calls.h). Fails: an unknown domain is 0, an unknown cache that of a small server.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "topology/node_map.h"

namespace coco::os {

// Where the calling thread is bound or, when its binding leaves a choice, where it runs right now: the
// operating system's numbers of NUMA node and CPU.
struct Seat {
    std::int32_t domain;
    std::int32_t cpu;
};
Seat seat();

// Data caches above the calling thread's CPU, in bytes; last_level may be the same cache as l2.
struct Caches {
    std::uint64_t l1_bytes = 0;
    std::uint64_t l2_bytes = 0;
    std::uint64_t last_level_bytes = 0;
};
// As the kernel tells, else the processor. Looked up at the first call, then remembered. No size is 0.
const Caches& caches();
// The caches of one CPU, from the kernel's tables, with `root` in front of /sys. All 0 where it has none.
Caches kernel_caches(std::int32_t cpu, std::string_view root = "");

// CPUs that a process may use. Plain data, fit for shared memory.
struct Cpus {
    static constexpr int kMost = 8192;  // Linux' own limit
    std::uint64_t mask[kMost / 64];
    std::int32_t quota;  // whole CPUs' time that the control group grants, at least 1; 0: no limit

    std::int32_t count() const;
};
Cpus usable_cpus();
// What the node's processors are and how many CPUs they have, in words: equal on all nodes that are alike.
std::string processors();
// The kinds of the node's fast networks in words, equal on all nodes that are alike, with `root` in front of
// /sys; empty where it has none.
std::string networks(std::string_view root = "");
// The quota of this process's control group (v1 or v2) and of all above it, with `root` in front of /proc and
// /sys.
std::int32_t cpu_quota(std::string_view root = "");
// The memory that they grant; UINT64_MAX: all.
std::uint64_t granted_memory_bytes(std::string_view root = "");

// Reads COCO_TOPOLOGY: "nodes=N,domains=M", or a synthetic description of hwloc's ("numa:2 core:4 pu:1"),
// which is one node with that many domains. Returns: nothing if it is neither (then `error` says why, in one
// line).
std::optional<topology::Invented> invented_machine(std::string_view text, std::string& error);

}  // namespace coco::os
