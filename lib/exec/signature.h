// SPDX-License-Identifier: BSD-3-Clause
//
// The signature by which ranks tell that they are in the same call: ranks that publish unequal signatures are
// in different calls, and the program is wrong. Called by exec's flights. Fails: ends the job with one line.
#pragma once
#include "exec/call.h"

namespace coco::exec {

// The bit that marks the signature of calls on neighbours whose blocks go in bundles: a mate that has chosen
// otherwise, in a wrong program, must not take one slot for the other.
inline constexpr std::uint32_t kBundled = 0x10;
// The bits of a signature that tell the collective, and whether blocks go in bundles.
inline constexpr std::uint32_t kKindBits = 0xF | kBundled;

inline std::uint32_t signature_of(const CommonFacts& common) {
    const std::uint64_t mixed = common.block_bytes * 0x9E3779B97F4A7C15u;
    return static_cast<std::uint32_t>(mixed >> 32 << 8) ^ (static_cast<std::uint32_t>(common.root) << 4) ^
           static_cast<std::uint32_t>(common.collective);
}
[[noreturn]] void stop_unequal(const comm::Comm& comm, std::int32_t peer);
// Ends the job if `peer` is in another call than this rank.
inline void check_signature(const comm::Comm& comm, const channel::Channel& channel, std::int32_t peer,
                            std::uint32_t signature) {
    if (channel.slot_of(peer).signature != signature) [[unlikely]]
        stop_unequal(comm, peer);
}

// Waits for all slots of a call, in which ranks may refuse. own: this rank's reason to refuse, or none.
// Returns: none, or a rank's reason to refuse; `peer` when only others refused.
stats::Reason agree(const comm::Comm& comm, channel::Channel& channel, std::uint32_t signature,
                    stats::Reason own);

}  // namespace coco::exec
