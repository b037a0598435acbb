// SPDX-License-Identifier: BSD-3-Clause
//
// How large a communicator may be on a node. Called by comm and by the command. Thread safety: constants.
#pragma once
#include <cstdint>

namespace coco::comm {

// The most ranks that a communicator may have on a node: for so many, two tables of displacements and two
// staged sides fit the stage ring.
inline constexpr std::int32_t kMatesMost = 500;

}  // namespace coco::comm
