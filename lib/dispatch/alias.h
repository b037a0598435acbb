// SPDX-License-Identifier: BSD-3-Clause
//
// Calls that send from where they receive. MPICH refuses those that it sees, on the rank that makes them and
// before it communicates, so that this rank's peers wait for ever. Here the rank takes part, sending a copy,
// and then hears the error that MPICH has for it. Called by dispatch alone. Thread safety: none, each belongs
// to a call. Without memory for the copy the job ends with a line: the other ranks are in the call.
#pragma once
#include <cstdint>
#include <vector>

#include "dispatch/args.h"
#include "dispatch/datatype.h"
#include "exec/call.h"
#include "mpi/library.h"

namespace coco::dispatch {

// Whether the MPI library refuses the call because it sends from where it receives. Requires: the call is not
// in place, and its arguments are valid. recv_type: not for w forms.
bool is_refused_alias(const Args& args, std::int32_t rank, const TypeFacts& recv_type);

// How far behind the receive buffer the MPI library does not allow a plain form to send from.
// element_bytes: the size of the receive buffer's type.
inline std::int64_t alias_bytes(algorithms::Collective collective, std::int64_t recv_count, std::int32_t rank,
                                std::uint64_t element_bytes) {
    if (!mpi::lib().manners.refuses_aliases || collective != algorithms::Collective::allgather) return 0;
    return rank * recv_count * static_cast<std::int64_t>(element_bytes);
}

// The send side of a call as a copy on the heap, for the time of the call.
class SentCopy {
  public:
    explicit SentCopy(blocks::Buffer& send);
    ~SentCopy();
    SentCopy(const SentCopy&) = delete;
    SentCopy& operator=(const SentCopy&) = delete;

  private:
    void* memory_;
    std::vector<blocks::BlockAt> blocks_;
};

}  // namespace coco::dispatch
