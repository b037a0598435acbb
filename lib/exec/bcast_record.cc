// SPDX-License-Identifier: BSD-3-Clause
#include "exec/bcast_record.h"

#include <cstring>

#include "base/check.h"
#include "heap/segment.h"

namespace coco::exec {

using channel::Publish;
using channel::Whereabouts;

void BcastRecord::open(channel::Channel& channel, const Contents& contents, std::byte* buffer,
                       std::uint64_t scratch_bytes) {
    COCO_CHECK_DEAR(!is_open(), "a record is opened once");
    COCO_CHECK_DEAR(
        contents.publish != Publish::direct || contents.total_bytes == 0 || heap::is_shared(buffer),
        "a buffer that is read in place is on the shared heap");
    contents_ = contents;
    const bool staged = contents.publish != Publish::inlined && contents.publish != Publish::direct;
    std::byte* stage = staged ? channel.stage_bytes(scratch_bytes) : nullptr;
    record_ = channel.open_record(header_of(contents));
    if (contents.publish == Publish::inlined) {
        shown_ = record_.payload();
        return;
    }
    shown_ = staged ? stage : buffer;
    Whereabouts where{channel.offset_of(shown_), contents.segment_bytes};
    std::memcpy(record_.payload(), &where, sizeof where);
}

void BcastRecord::follow(const channel::Channel& channel, std::int32_t publisher, channel::Record record) {
    COCO_CHECK_DEAR(record.header != nullptr, "a record that is followed is there");
    channel::Header header{record.header->load(std::memory_order_relaxed)};  // next_record() has acquired it
    contents_ = {header.publish(), header.bytes()};
    is_of_call_ = header.is_of_call(channel.epoch());
    shown_ = record.payload();
    if (contents_.publish == Publish::inlined) return;
    Whereabouts where;
    std::memcpy(&where, record.payload(), sizeof where);
    contents_.segment_bytes = where.segment_bytes;
    shown_ = channel.at(publisher, where.at);
}

}  // namespace coco::exec
