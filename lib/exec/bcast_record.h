// SPDX-License-Identifier: BSD-3-Clause
//
// An epoch of a bcast as one rank publishes it to its mates by a record on its tape: how long the whole
// buffer is, and where its blocks can be read. Used by bcast.cc (the root publishes) and nodes_bcast.cc (each
// leader does). Thread safety: none; it belongs to a call. Never fails.
#pragma once
#include "channel/channel.h"

namespace coco::exec {

class BcastRecord {
  public:
    // If direct, the buffer is read in place; otherwise `scratch_bytes` of the record or the stage are read.
    struct Contents {
        channel::Publish publish;
        std::uint64_t total_bytes;  // the size of the whole buffer, in all epochs of the call
        std::uint64_t segment_bytes = 0;
    };

    // The publisher's: opens a record, which publish() shows. Requires: where direct, buffer is on the shared
    // heap.
    void open(channel::Channel& channel, const Contents& contents, std::byte* buffer,
              std::uint64_t scratch_bytes);
    bool is_open() const { return record_.header != nullptr; }
    void publish(channel::Channel& channel) const { channel.publish(record_, header_of(contents_)); }

    // A reader's: what `publisher` has published. Requires: next_record() gave `record`.
    void follow(const channel::Channel& channel, std::int32_t publisher, channel::Record record);

    const Contents& contents() const { return contents_; }
    // A reader's: whether it was published in the call that runs.
    bool is_of_call() const { return is_of_call_; }
    // The buffer or the scratch, in this process.
    std::byte* shown() const { return shown_; }

  private:
    static channel::Header header_of(const Contents& contents) {
        return channel::Header::of(contents.publish, contents.total_bytes);
    }

    Contents contents_{};
    bool is_of_call_ = false;
    channel::Record record_{};
    std::byte* shown_ = nullptr;
};

}  // namespace coco::exec
