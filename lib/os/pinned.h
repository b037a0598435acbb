// SPDX-License-Identifier: BSD-3-Clause
//
// Whether devices may know pages of this process by their physical addresses. Such pages must stay where they are: a
// device would go on with the old ones. The kernel tells nobody which pages are pinned, only how many (VmPin), and
// drivers outside its tree are not counted. Called by heap/private_blocks.cc before it adopts memory. Takes some 50 us.
// Thread safety: any thread; not in signal handlers. Fails: by saying yes.
#pragma once
#include <cstdint>
#include <string_view>

namespace coco::os {

// Whether the program, or a library that is not the MPI library's, may have pinned memory of its own. No: nothing is
// pinned and no device's library is loaded, or the machine has a network that pins memory and only the MPI library uses it,
// whose registered memory is forgotten when it sees a range mapped anew.
bool may_have_pinned_memory();

// Whether pages of the process may be locked (mlock) or watched (userfaultfd), which pages mapped anew would not be.
bool may_have_watched_memory();

// The parts of that question, for tests. The number behind VmPin in the text of /proc/self/status, in KiB; what cannot be
// read counts as pinned.
std::uint64_t pinned_kib(std::string_view status);
std::uint64_t locked_kib(std::string_view status);
// Whether a library of this name hands the program's memory to a device.
bool is_of_device(std::string_view library);
// Whether the MPI library, or one below it that registers and forgets memory, has this name.
bool is_of_transport(std::string_view library);
// Whether whoever needs a library of this name may register memory for a network.
bool registers_memory(std::string_view library);

}  // namespace coco::os
