// SPDX-License-Identifier: BSD-3-Clause
//
// Memory whose pages must stay those that they are: that of MPI windows, into which other ranks put at any time, some of
// them through a network device. Filled by the doors of MPI_Win_create, MPI_Win_attach and their ends; asked by
// private_blocks.cc before it adopts. Thread safety: any thread. Fails: no; without memory for a range it ends the process.
#pragma once
#include <cstdint>

namespace coco::heap {

// Holds a range for a holder, which is a number of the caller's. Ranges may overlap.
void hold(const void* address, std::uint64_t bytes, std::uintptr_t holder);
// Lets go of a holder's range that begins there, or of all of its ranges.
void let_go(std::uintptr_t holder, const void* address);
void let_go(std::uintptr_t holder);
// Gives all ranges of one holder to another.
void hand_over(std::uintptr_t from, std::uintptr_t to);
// Whether anybody holds a byte of the range.
bool is_held(const void* address, std::uint64_t bytes);

}  // namespace coco::heap
