// SPDX-License-Identifier: BSD-3-Clause
#include "policy/policy.h"

namespace coco::policy {
namespace {

constexpr std::string_view kRules = R"(# The built-in rules. The first that matches wins; no match means mpi.
[[rule]]
nodes = "2-"
algorithm = "mpi"
reason = "the algorithms of this version stay within one node"

[[rule]]
collective = "bcast"
block = "-8K"
algorithm = "eager"
reason = "the root copies once and runs ahead"

[[rule]]
collective = "bcast"
algorithm = "direct"
reason = "one copy instead of two"

[[rule]]
collective = ["alltoall", "allgather", "allgatherv"]
block = "-4K"
algorithm = "eager"
reason = "one synchronisation and any buffer"

[[rule]]
collective = ["alltoall", "allgather", "allgatherv"]
algorithm = "naive"
reason = "one copy instead of two"

[[rule]]
collective = ["alltoallv", "alltoallw"]
algorithm = "eager"
reason = "no size is common to all ranks; large blocks on the shared heap are read in place"
)";

}  // namespace

std::string_view default_rules() { return kRules; }

}  // namespace coco::policy
