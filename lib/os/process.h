// SPDX-License-Identifier: BSD-3-Clause
//
// What this process is: on which host, and whether it is an MPI rank. Read once at start by the heap.
// Works below malloc and before libc's constructors. Thread safety: any thread.
#pragma once
#include <cstdint>

namespace coco::os {

// Hash of the boot id and of the pid and user namespaces: two processes with equal hashes see the same
// /proc/PID and may try to map each other's memory. (Other namespaces do not matter to /proc/PID/fd.)
std::uint64_t host_identity();
// Random, never 0.
std::uint64_t random_cookie();
// Whether an MPI library is loaded, or an MPI launcher started this process: its environment says so, and no rank among
// this process's ancestors has passed that environment on (mark_children).
bool is_mpi_rank();
// Notes in this process's environment that whoever inherits it from now on is a rank's child and no rank. Called once,
// when MPI has started, as it changes the environment.
void mark_children();
// Whether valgrind runs this process. Its tools keep shadow memory for all that is mapped accessible, touched
// or not, so that a large sparse mapping fills the machine.
bool is_under_valgrind();

}  // namespace coco::os
