// SPDX-License-Identifier: BSD-3-Clause
#include "policy/policy.h"

namespace coco::policy {
namespace {

constexpr std::string_view kRules = R"(# The built-in rules. The first that matches wins; no match means mpi.
# Neighbours, on any number of nodes. Figures: bench/neighbor on 2 cores, see bench/results.
[[rule]]
collective = ["neighbor_alltoall", "neighbor_allgather"]
block = "-4K"
algorithm = "eager"
reason = "one synchronisation with each neighbour and any buffer"

[[rule]]
collective = ["neighbor_alltoall", "neighbor_allgather"]
algorithm = "naive"
reason = "one copy instead of two, straight from the neighbours' buffers"

[[rule]]
collective = ["neighbor_alltoallv", "neighbor_alltoallw", "neighbor_allgatherv"]
algorithm = "eager"
reason = "no size is common to all ranks; large blocks on the shared heap are read in place"

# Several nodes. Figures: bench/collective on clusters of namespaces over TCP, see bench/results.
[[rule]]
collective = "alltoall"
nodes = "8-"
ranks = "2-"
block = "-256"
algorithm = "leader:bruck"
reason = "few messages between nodes, of which each costs more than what it carries"

[[rule]]
collective = "alltoall"
nodes = "2-"
ranks = "2-"
block = "-4K"
algorithm = "leader"
reason = "one message between two nodes instead of one between two ranks"

[[rule]]
collective = ["alltoallv", "alltoallw"]
nodes = "2-"
ranks = "2-"
block = "-2K"
algorithm = "leader"
reason = "one message between two nodes; the block is the largest of the call before"

[[rule]]
collective = ["allgather", "allgatherv"]
nodes = "2-"
ranks = "3-"
block = "-64K"
algorithm = "leader"
reason = "what a node's ranks need of another crosses the network once"

[[rule]]
collective = "alltoall"
nodes = "4-"
ranks = "1"
block = "-2K"
algorithm = "bruck"
reason = "log2(P) messages instead of P; beyond, what is sent on costs more than messages"

[[rule]]
collective = ["alltoallv", "alltoallw"]
nodes = "4-"
ranks = "1"
block = "-1K"
algorithm = "sloav"
reason = "log2(P) messages instead of P; the block is the largest of the call before"

# Streams of small bcasts cost what their messages cost, and MPICH sends as few between hosts: 1.0 to 1.5 times as
# fast up to 8 KiB, 1.4 to 5 times from 16 KiB; Open MPI's 1.0 to 7 times. Above 1 MiB nothing was measured.
[[rule]]
collective = "bcast"
nodes = "2-7"
ranks = "3-"
block = "-1M"
algorithm = "leader"
reason = "one message to each node, whose ranks read a segment while the next one comes"

# Two ranks, 256 KiB: 1.4 times as fast as MPICH's, but 0.9 to 1.0 times Open MPI's.
[[rule]]
collective = "bcast"
nodes = "2-7"
ranks = "2"
block = "-128K"
algorithm = "leader"
reason = "one message to each node; of two ranks MPI passes larger ones on as fast"

# 8 x 4 ranks from 256 KiB: 3 times as fast as MPICH's, but 0.9 to 1.0 times Open MPI's.
[[rule]]
collective = "bcast"
nodes = "8-"
ranks = "3-"
block = "-128K"
algorithm = "leader"
reason = "one message to each node; larger ones go between many nodes as fast by themselves"

[[rule]]
nodes = "2-"
algorithm = "mpi"
reason = "nothing of ours was faster there: two ranks a node gather, and one receives a bcast, as fast without us"

# One node. Figures: bench/collective on 2 cores, see bench/results.

[[rule]]
collective = "bcast"
ranks = "-2"
block = "-2K"
algorithm = "eager"
reason = "the root tells and runs ahead; from 4 KiB one copy instead of two is faster"

[[rule]]
collective = "bcast"
ranks = "3-"
block = "-16K"
algorithm = "eager"
reason = "waiting for all readers costs the root more than a second copy"

[[rule]]
collective = "bcast"
algorithm = "direct"
reason = "one copy instead of two; segments where the root's buffer is private"

[[rule]]
collective = ["alltoall", "allgather", "allgatherv"]
ranks = "-2"
block = "-512"
algorithm = "eager"
reason = "one synchronisation and any buffer; from 1 KiB one copy instead of two is faster"

[[rule]]
collective = "alltoall"
ranks = "3-"
block = "-4K"
algorithm = "eager"
reason = "one synchronisation and any buffer"

[[rule]]
collective = ["allgather", "allgatherv"]
ranks = "3-"
block = "-8K"
algorithm = "eager"
reason = "one synchronisation and any buffer; the one block is copied out once for all"

[[rule]]
collective = ["alltoall", "allgather", "allgatherv"]
algorithm = "naive"
reason = "one copy instead of two; Morton orders win where caches are small against the blocks: measure"

[[rule]]
collective = ["alltoallv", "alltoallw"]
algorithm = "eager"
reason = "no size is common to all ranks; large blocks on the shared heap are read in place"
)";

}  // namespace

std::string_view default_rules() { return kRules; }

}  // namespace coco::policy
