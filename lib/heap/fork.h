// SPDX-License-Identifier: BSD-3-Clause
//
// Fork with a heap in shared memory: the child gets a private copy of the heap before it returns from fork,
// and the parent does not return from fork until that copy is complete. fork runs the handlers; posix_spawn,
// vfork, system and popen do not, copy nothing and stay cheap. A child made by the bare clone system call
// shares the parent's heap: it must exec or leave at once.
#pragma once

namespace coco::heap {

using ForkHandler = void (*)();
// Registers our handlers around the allocator's: its locks are held while the copy is made. Returns: 0 or an
// errno.
int guard_forks(ForkHandler prepare, ForkHandler parent, ForkHandler child);
// Whether that has been done: the allocator does it when it is first used.
bool forks_are_guarded();

}  // namespace coco::heap
