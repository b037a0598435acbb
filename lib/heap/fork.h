// SPDX-License-Identifier: BSD-3-Clause
//
// Fork with a heap in shared memory: the child gets a private copy of the heap before it returns from fork,
// and the parent does not return from fork until that copy is complete. fork runs the handlers; posix_spawn,
// vfork, system and popen do not, copy nothing and stay cheap. A child made by the bare clone system call
// shares the parent's heap: it must exec or leave at once.
#pragma once

namespace coco::heap {

// Whether our handlers around a fork are registered: the allocator does that when it is first used.
bool forks_are_guarded();

}  // namespace coco::heap
