// SPDX-License-Identifier: BSD-3-Clause
//
// An epoch of a bcast as one rank tells it to its mates by a record on its tape: how long the whole buffer
// is, and where its blocks can be read. Used by bcast.cc (the root tells) and nodes_bcast.cc (so does each
// leader). Thread safety: none; it belongs to a call. Never fails.
#pragma once
#include "comm/comm.h"

namespace coco::exec {

class BcastRecord {
  public:
    // What is told. `buffer` is read in place if direct, else `scratch_bytes` of the record or the stage are.
    struct Tale {
        channel::Publish publish;
        std::uint64_t total_bytes;  // of all epochs of the call
        std::uint64_t segment_bytes = 0;
    };

    // The teller's: opens a record, which publish() shows. Requires: where direct, buffer is on the shared
    // heap.
    void open(comm::Comm& comm, const Tale& tale, std::byte* buffer, std::uint64_t scratch_bytes);
    bool is_open() const { return record_.header != nullptr; }
    void publish(comm::Comm& comm) const { comm.channel.publish(record_, header_of(tale_)); }

    // A mate's: what `teller` has published. Requires: next_record() gave `record`.
    void follow(const comm::Comm& comm, std::int32_t teller, channel::Record record);

    const Tale& tale() const { return tale_; }
    // A mate's: whether it was told in the call that runs.
    bool is_of_call() const { return is_of_call_; }
    // The buffer or the scratch, in this process.
    std::byte* shown() const { return shown_; }

  private:
    static channel::Header header_of(const Tale& tale) {
        return channel::Header::of(tale.publish, tale.total_bytes);
    }

    Tale tale_{};
    bool is_of_call_ = false;
    channel::Record record_{};
    std::byte* shown_ = nullptr;
};

}  // namespace coco::exec
