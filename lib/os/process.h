// SPDX-License-Identifier: BSD-3-Clause
//
// Facts of this process: on which host it runs, and whether it is an MPI rank. Read once at start by the
// heap. Works below malloc and before libc's constructors. Thread safety: any thread.
#pragma once
#include <cstdint>
#include <string_view>

namespace coco::os {

// Hash of the boot id and of the pid and user namespaces: two processes with equal hashes see the same
// /proc/PID and may try to map each other's memory. (Other namespaces do not matter to /proc/PID/fd.)
std::uint64_t host_identity();
// Random, never 0.
std::uint64_t random_cookie();
// The kernel's number of the calling thread.
std::int32_t own_thread();
// Whether an MPI library is loaded, or an MPI launcher started this process: its environment says so, and no
// rank among this process's ancestors has passed that environment on (mark_children).
bool is_mpi_rank();
// Notes in this process's environment that whoever inherits it from now on is a rank's child and no rank.
// Called once, before MPI starts, as it changes the environment. A job that a rank starts has other variables
// of its launcher's.
void mark_children();
// Whether valgrind runs this process. Its tools keep shadow memory for all that is mapped accessible, touched
// or not, so that a large sparse mapping fills the machine.
bool is_under_valgrind();
// The number of this process in its job, as the launcher's environment says; -1: it does not.
std::int64_t launched_rank();
// How many ranks the job has, as the launcher's environment says; 0: it does not.
std::uint64_t launched_ranks();
// How many ranks of the job run on this node, as the launcher's environment says; 0: it does not.
std::uint64_t launched_node_ranks();
// The same, or else online_cpus().
std::uint64_t node_ranks();
// How many CPUs the node has online, at least 1. Looked up at the first call, then remembered.
std::uint64_t online_cpus();
// How many CPUs a list like "0-3,8,10-11" names; 0 where it is none.
std::uint64_t count_cpus(std::string_view list);
// One node's number in Slurm's list of tasks, "16(x2),3". Returns: 0 where it has none.
std::uint64_t tasks_of_node(std::string_view list, std::uint64_t node);

}  // namespace coco::os
