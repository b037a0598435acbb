// SPDX-License-Identifier: BSD-3-Clause
//
// Reading another process's memory through the kernel. Called by channel and exec. Thread safety: any thread.
// Fails: by return value, where the kernel forbids it (Yama's ptrace_scope, seccomp in containers, other
// users) or nothing is mapped there.
#pragma once
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>

namespace coco::os {

// Lets processes of the same user read this one's memory where Yama allows that to a process's parents alone
// (ptrace_scope 1), as MPI libraries do.
void let_others_read();

// Copies `bytes` from an address of process `pid`. Returns: whether all of them were copied.
bool read_process(pid_t pid, const void* from, void* to, std::size_t bytes);
// The same into several places, one after the other: as many bytes as they take.
bool read_process(pid_t pid, const void* from, std::span<const iovec> to);

}  // namespace coco::os
