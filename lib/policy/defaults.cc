// SPDX-License-Identifier: BSD-3-Clause
#include "policy/policy.h"

namespace coco::policy {
namespace {

constexpr std::string_view kRules = R"(# The built-in rules. The first that matches wins; no match means mpi.
# Neighbours over several nodes. Figures: bench/neighbor on clusters of namespaces over TCP, to 8 x 4 ranks,
# against the library's own; see bench/results. What aggregate gains goes with the edges from a node to
# another: degrees below make it two and more. combining was no faster than both libraries' own on any of
# these clusters. Making the bundles takes 5 to 20 ms there, and a call earns back some 100 us: so they are
# for programs that call often on the same neighbours.
[[rule]]
collective = "neighbor_alltoall"
nodes = "2-8"
ranks = "3-8"
degree = "1-"
block = "-2K"
calls = "50-"
algorithm = "aggregate"
reason = "one message between two nodes instead of one between two ranks"

[[rule]]
collective = "neighbor_allgather"
nodes = "2-8"
ranks = "3-8"
degree = "1-"
block = "-4K"
calls = "50-"
algorithm = "aggregate"
reason = "what a node's ranks need of another's crosses the network once"

[[rule]]
collective = "neighbor_alltoall"
nodes = "2-4"
ranks = "2"
degree = "4-"
block = "-2K"
calls = "50-"
algorithm = "aggregate"
reason = "one message between two nodes instead of one between two ranks"

[[rule]]
collective = "neighbor_allgather"
nodes = "2-4"
ranks = "2"
degree = "4-"
block = "-4K"
calls = "50-"
algorithm = "aggregate"
reason = "what a node's ranks need of another's crosses the network once"

[[rule]]
collective = "neighbor_alltoall"
nodes = "5-8"
ranks = "2"
degree = "7-"
block = "-2K"
calls = "50-"
algorithm = "aggregate"
reason = "one message between two nodes instead of one between two ranks"

[[rule]]
collective = "neighbor_allgather"
nodes = "5-8"
ranks = "2"
degree = "7-"
block = "-4K"
calls = "50-"
algorithm = "aggregate"
reason = "what a node's ranks need of another's crosses the network once"

# 8 x 1: eager and naive 1.1 to 1.3 times as fast as MPICH's, but 0.9 to 1.0 times Open MPI's.
[[rule]]
collective = ["neighbor_alltoall", "neighbor_allgather"]
nodes = "2-"
ranks = "1"
algorithm = "mpi"
reason = "no mate to copy from or to share a message with: Open MPI's own messages are as fast, or faster"

# 8 x 2: eager and naive 1.1 to 1.2 times as fast as MPICH's, but 0.9 to 1.0 times Open MPI's.
[[rule]]
collective = ["neighbor_alltoall", "neighbor_allgather"]
nodes = "5-"
ranks = "2"
degree = "-6"
algorithm = "mpi"
reason = "few edges to a mate, and few from a node to another: Open MPI's own messages are as fast, or faster"

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

# Several nodes. Figures: bench/collective on clusters of namespaces over TCP, to 8 x 4 ranks, and
# bench/simulate beyond; see bench/results.
[[rule]]
collective = "alltoall"
nodes = "16-"
ranks = "2-3"
block = "-256"
algorithm = "leader:bruck,radix=4,leaders=4"
also = ["multileader"]
reason = "simulated at 32 x 2: few messages a rank, and all ranks of a node send"

[[rule]]
collective = "alltoall"
nodes = "16-"
ranks = "4-7"
block = "-32"
algorithm = "leader:bruck,radix=4,leaders=8"
also = ["multileader"]
reason = "simulated at 64 x 4: few messages a rank, and all ranks of a node send"

[[rule]]
collective = "alltoall"
nodes = "2-8"
ranks = "2-4"
block = "-1K"
algorithm = "leader"
also = ["multileader"]
reason = "one message between two nodes instead of one between two ranks"

[[rule]]
collective = "alltoall"
nodes = "2-"
ranks = "2-"
block = "-512"
algorithm = "multileader"
also = ["leader"]
reason = "simulated at 8 x 8 and 16 x 16: no rank packs for a large node, or sends to many, alone"

[[rule]]
collective = ["alltoallv", "alltoallw"]
nodes = "2-8"
ranks = "2-4"
block = "-1K"
algorithm = "multileader"
also = ["leader"]
reason = "one message between two nodes, no rank packs alone; the block is the largest of the call before"

[[rule]]
collective = ["alltoallv", "alltoallw"]
nodes = "2-"
ranks = "2-"
block = "-512"
algorithm = "multileader"
also = ["leader"]
reason = "simulated at 8 x 8: as for alltoall; the block is the largest of the call before"

[[rule]]
collective = ["allgather", "allgatherv"]
nodes = "16-"
ranks = "8-"
block = "-256"
algorithm = "multileader"
also = ["leader"]
reason = "simulated at 16 x 16: one leader's messages to all nodes take longer than what they carry"

[[rule]]
collective = ["allgather", "allgatherv"]
nodes = "16-"
ranks = "3-"
block = "-1K"
algorithm = "leader:bruck"
also = ["multileader"]
reason = "simulated at 64 x 4: log2(N) messages of a leader instead of N"

[[rule]]
collective = ["allgather", "allgatherv"]
nodes = "2-"
ranks = "3-"
block = "-64K"
algorithm = "leader"
also = ["multileader"]
reason = "what a node's ranks need of another crosses the network once"

[[rule]]
collective = "alltoall"
nodes = "16-"
ranks = "1"
block = "-64"
algorithm = "bruck:radix=4"
also = ["bruck:radix=8"]
reason = "simulated at 64 x 1 and 256 x 1: in base 2 rounds, and what they copy, take longer than messages"

[[rule]]
collective = "alltoall"
nodes = "16-"
ranks = "1"
block = "-512"
algorithm = "bruck:radix=8"
also = ["bruck:radix=4"]
reason = "simulated at 64 x 1 and 256 x 1: less is sent on than in base 4"

[[rule]]
collective = "alltoall"
nodes = "8-15"
ranks = "1"
block = "-256"
algorithm = "bruck:radix=4"
also = ["bruck:radix=8"]
reason = "few messages instead of P; simulated at 8 x 1, base 2 has a round more and no gain"

[[rule]]
collective = "alltoall"
nodes = "4-7"
ranks = "1"
block = "-256"
algorithm = "bruck"
also = ["bruck:radix=4"]
reason = "log2(P) messages instead of P; beyond, what is sent on costs more than messages"

[[rule]]
collective = ["alltoallv", "alltoallw"]
nodes = "16-"
ranks = "1"
block = "-64"
algorithm = "sloav:radix=4"
also = ["sloav:radix=8"]
reason = "simulated at 64 x 1: as for alltoall; the block is the largest of the call before"

[[rule]]
collective = ["alltoallv", "alltoallw"]
nodes = "16-"
ranks = "1"
block = "-512"
algorithm = "sloav:radix=8"
also = ["sloav:radix=4"]
reason = "simulated at 64 x 1: as for alltoall; the block is the largest of the call before"

[[rule]]
collective = ["alltoallv", "alltoallw"]
nodes = "8-15"
ranks = "1"
block = "-256"
algorithm = "sloav:radix=4"
also = ["sloav:radix=8"]
reason = "simulated at 8 x 1: as for alltoall; the block is the largest of the call before"

[[rule]]
collective = ["alltoallv", "alltoallw"]
nodes = "4-7"
ranks = "1"
block = "-256"
algorithm = "sloav"
also = ["sloav:radix=4"]
reason = "log2(P) messages instead of P; the block is the largest of the call before"

# Streams of small bcasts cost what their messages cost, and MPICH sends as few between hosts: 1.0 to 1.5
# times as fast up to 8 KiB, 1.4 to 5 times from 16 KiB; Open MPI's 1.0 to 7 times. Above 1 MiB nothing was
# measured.
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

# Larger blocks, and fewer ranks: which is faster differs from network to network, so that a program tries
# ours. Only for blocks of sizes that were measured: a try of larger ones would take much memory as scratch.

# 4 x 2 ranks, 4 and 32 KiB: leader and multileader 2 times as fast as MPICH's; other forms differ.
[[rule]]
collective = ["alltoall", "alltoallv", "alltoallw"]
nodes = "2-"
ranks = "2-"
block = "-256K"
algorithm = "mpi"
also = ["multileader", "leader"]
reason = "which is faster depends on the network: what a node packs together, or messages of the ranks' own"

# 4 x 1 ranks: bruck 1.2 to 1.35 times as fast as both libraries' own at 512 B, 1.2 to 1.3 times at 4 KiB.
[[rule]]
collective = "alltoall"
nodes = "4-"
ranks = "1"
block = "-32K"
algorithm = "mpi"
also = ["bruck"]
reason = "the dearer a message, the larger the blocks that are better sent on in few messages"

# 4 x 1 ranks: sloav 1.1 to 1.3 times as fast as both libraries' own at 512 B, and not faster from 4 KiB.
[[rule]]
collective = ["alltoallv", "alltoallw"]
nodes = "4-"
ranks = "1"
block = "-32K"
algorithm = "mpi"
also = ["sloav"]
reason = "the dearer a message, the larger the blocks that are better sent on in few messages"

# 4 x 2 ranks: leader and multileader 1.05 to 1.9 times as fast as both libraries' own.
[[rule]]
collective = ["allgather", "allgatherv"]
nodes = "2-"
ranks = "2-"
block = "-256K"
algorithm = "mpi"
also = ["multileader", "leader"]
reason = "on few nodes two ranks a node gather as fast without us, and large blocks of more ranks do"

# 4 x 1 ranks: not faster than both libraries' own to 4 KiB; at 32 KiB leader 1.1 and 1.6 times as fast.
[[rule]]
collective = ["allgather", "allgatherv"]
nodes = "4-"
ranks = "1"
block = "-256K"
algorithm = "mpi"
also = ["bruck", "leader"]
reason = "small blocks go as fast by themselves; large ones do so by some libraries only"

# 4 x 1 ranks: leader 2.4 times as fast as MPICH's bcast at 32 KiB, and 0.6 to 1.6 times as fast as Open MPI's
# to 4 KiB, from job to job.
[[rule]]
collective = "bcast"
nodes = "2-"
block = "-1M"
algorithm = "mpi"
also = ["leader"]
reason = "between ranks that share no node, and in large blocks, MPI passes them on as fast by most libraries"

[[rule]]
nodes = "2-"
algorithm = "mpi"
reason = "nothing of ours was faster there, or nothing was measured"

# One node. Figures: bench/collective on 2 cores, and on 16 for where each rank has a CPU
# (bench/results/trials-16-cores.txt).

[[rule]]
collective = "bcast"
ranks = "-2"
block = "-2K"
algorithm = "eager"
also = ["direct"]
reason = "the root tells and runs ahead; from 4 KiB one copy instead of two is faster"

[[rule]]
collective = "bcast"
ranks = "3-"
block = "-16K"
algorithm = "eager"
also = ["direct"]
reason = "waiting for all readers costs the root more than a second copy"

[[rule]]
collective = "bcast"
algorithm = "direct"
also = ["eager", "segmented"]
reason = "one copy instead of two; segments where the root's buffer is private"

[[rule]]
collective = ["alltoall", "allgather", "allgatherv"]
ranks = "-2"
block = "-512"
algorithm = "eager"
also = ["naive"]
reason = "one synchronisation and any buffer; from 1 KiB one copy instead of two is faster"

# 8 and 16 ranks with a CPU each, 2 and 4 KiB that were just written: naive 1.1 to 1.5 times as fast.
[[rule]]
collective = "alltoall"
ranks = "5-"
crowded = false
block = "-1K"
algorithm = "eager"
also = ["naive"]
reason = "one synchronisation and any buffer; from 2 KiB one copy instead of two is faster"

[[rule]]
collective = "alltoall"
ranks = "5-"
crowded = true
block = "-4K"
algorithm = "eager"
also = ["naive"]
reason = "one synchronisation and any buffer"

[[rule]]
collective = "alltoall"
ranks = "3-4"
block = "-4K"
algorithm = "eager"
also = ["naive"]
reason = "one synchronisation and any buffer"

# 8 and 16 ranks with a CPU each, 1 to 4 KiB that were just written: naive 1.2 to 1.4 times as fast; 4 ranks
# 0.8 to 1.2 times.
[[rule]]
collective = ["allgather", "allgatherv"]
ranks = "3-"
crowded = false
block = "-512"
algorithm = "eager"
also = ["naive"]
reason = "one synchronisation and any buffer; from 1 KiB one copy instead of two is faster"

[[rule]]
collective = ["allgather", "allgatherv"]
ranks = "3-"
crowded = true
block = "-8K"
algorithm = "eager"
also = ["naive"]
reason = "one synchronisation and any buffer; the one block is copied out once for all"

[[rule]]
collective = ["alltoall", "allgather", "allgatherv"]
domains = "2-"
algorithm = "naive"
also = ["morton", "numa_morton"]
reason = "one copy instead of two; Morton orders win where caches are small against the blocks"

[[rule]]
collective = ["alltoall", "allgather", "allgatherv"]
algorithm = "naive"
also = ["morton", "eager"]
reason = "one copy instead of two; Morton orders win where caches are small against the blocks"

[[rule]]
collective = ["alltoallv", "alltoallw"]
algorithm = "eager"
also = ["naive", "morton"]
reason = "no size is common to all ranks; large blocks on the shared heap are read in place"
)";

}  // namespace

std::string_view default_rules() { return kRules; }

}  // namespace coco::policy
