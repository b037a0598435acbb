// SPDX-License-Identifier: BSD-3-Clause
#include "exec/carrier.h"

#include <algorithm>
#include <cstring>

#include "exec/copy_block.h"

namespace coco::exec {
namespace {

// Data that goes along with the lengths.
constexpr std::uint64_t kAlongBytes = 4096;
// In a length: the block goes straight.
constexpr std::uint64_t kStraight = std::uint64_t{1} << 63;

std::uint64_t lengths_bytes(std::int32_t blocks) {
    return static_cast<std::uint64_t>(blocks) * sizeof(std::uint64_t);
}
std::uint64_t length_at(const std::byte* lengths, std::int32_t i) {
    std::uint64_t length = 0;
    std::memcpy(&length, lengths + lengths_bytes(i), sizeof length);
    return length;
}
std::uint64_t travelling(std::uint64_t length) { return (length & kStraight) != 0 ? 0 : length; }

}  // namespace

void Carrier::send(std::int32_t to, std::span<const Item> items) {
    const auto blocks = static_cast<std::int32_t>(items.size());
    std::uint64_t data_bytes = 0;
    for (const Item& item : items) data_bytes += item.straight ? 0 : item.bytes;
    const std::uint64_t head_bytes = lengths_bytes(blocks);
    std::byte* memory = memory_of(head_bytes + data_bytes);
    std::byte* data = memory + head_bytes;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const std::uint64_t length = items[i].bytes | (items[i].straight ? kStraight : 0);
        std::memcpy(memory + lengths_bytes(static_cast<std::int32_t>(i)), &length, sizeof length);
        if (travelling(length) != 0) copy_block(data, items[i].at, length);
        data += travelling(length);
    }
    const bool along = data_bytes <= kAlongBytes;
    Travel& travel = travels_.emplace_back(Travel{true, to, schedule::Place{}, blocks, memory, nullptr});
    comm_.wire->start_send(to, memory, along ? head_bytes + data_bytes : head_bytes, mpi::Wire::kFirstTag,
                           travel.head);
    if (!along)
        comm_.wire->start_send(to, memory + head_bytes, data_bytes, mpi::Wire::kThirdTag, travel.rest);
}

void Carrier::receive(std::int32_t from, schedule::Place first, std::int32_t blocks) {
    const std::uint64_t most = lengths_bytes(blocks) + kAlongBytes;
    std::byte* memory = memory_of(most);
    Travel& travel =
        travels_.emplace_back(Travel{false, from, first, blocks, memory, memory + lengths_bytes(blocks)});
    comm_.wire->start_receive(from, memory, most, mpi::Wire::kFirstTag, travel.head);
}

// In the order of their start: what a head waits for is further on than what came before it.
void Carrier::complete(std::size_t left, const std::function<void(schedule::Place, const Item&)>& arrived) {
    const std::size_t count = travels_.size() - std::min(left, travels_.size());
    const std::span ending = std::span(travels_).first(count);
    for (Travel& travel : ending) {
        comm_.complete(travel.head);
        if (!travel.sends) fetch_rest(travel);
    }
    for (Travel& travel : ending) {
        comm_.complete(travel.rest);
        if (travel.sends) continue;
        const std::byte* data = travel.data;
        for (std::int32_t i = 0; i < travel.blocks; ++i) {
            const std::uint64_t length = length_at(travel.lengths, i);
            arrived({travel.first.owner, travel.first.area, travel.first.index + i},
                    {data, length & ~kStraight, (length & kStraight) != 0});
            data += travelling(length);
        }
    }
    travels_.erase(travels_.begin(), travels_.begin() + static_cast<std::ptrdiff_t>(count));
}

void Carrier::fetch_rest(Travel& travel) {
    std::uint64_t bytes = 0;
    for (std::int32_t i = 0; i < travel.blocks; ++i) bytes += travelling(length_at(travel.lengths, i));
    if (bytes <= kAlongBytes) return;
    travel.data = memory_of(bytes);
    comm_.wire->start_receive(travel.peer, travel.data, bytes, mpi::Wire::kThirdTag, travel.rest);
}

// Each asks for its own: the store's other memories stay where they are.
std::byte* Carrier::memory_of(std::uint64_t bytes) {
    if (used_ == store_.size()) store_.emplace_back();
    std::vector<std::byte>& memory = store_[used_++];
    if (memory.size() < bytes) memory.resize(bytes);
    return memory.data();
}

}  // namespace coco::exec
