// SPDX-License-Identifier: BSD-3-Clause
#include "exec/bcast_record.h"

#include <cstring>

namespace coco::exec {

using channel::Publish;
using channel::Whereabouts;

void BcastRecord::open(comm::Comm& comm, const Tale& tale, std::byte* buffer, std::uint64_t scratch_bytes) {
    tale_ = tale;
    record_ = comm.channel.open_record(header_of(tale));
    if (tale.publish == Publish::inlined) {
        shown_ = record_.payload();
        return;
    }
    shown_ = tale.publish == Publish::direct ? buffer : comm.channel.stage_bytes(scratch_bytes);
    Whereabouts where{comm.channel.offset_of(shown_), tale.segment_bytes};
    std::memcpy(record_.payload(), &where, sizeof where);
}

void BcastRecord::follow(const comm::Comm& comm, std::int32_t teller, channel::Record record) {
    channel::Header header{record.header->load(std::memory_order_relaxed)};
    tale_ = {header.publish(), header.bytes()};
    is_of_call_ = header.is_of_call(comm.channel.epoch());
    shown_ = record.payload();
    if (tale_.publish == Publish::inlined) return;
    Whereabouts where;
    std::memcpy(&where, record.payload(), sizeof where);
    tale_.segment_bytes = where.segment_bytes;
    shown_ = comm.channel.at(teller, where.at);
}

}  // namespace coco::exec
