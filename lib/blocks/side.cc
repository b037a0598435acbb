// SPDX-License-Identifier: BSD-3-Clause
#include "blocks/side.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "blocks/copy_block.h"
#include "blocks/publish.h"
#include "heap/overlays.h"
#include "heap/private_blocks.h"
#include "heap/segment.h"

namespace coco::blocks {
namespace {

std::uint64_t bytes_of_block(const Buffer& buffer, std::int32_t block, std::uint64_t block_bytes) {
    return buffer.blocks.empty() ? block_bytes : buffer.blocks[block].bytes;
}

std::byte* user_block(const Buffer& buffer, std::int32_t block) {
    std::int64_t displacement =
        buffer.blocks.empty() ? block * buffer.stride_bytes : buffer.blocks[block].displacement_bytes;
    return base::displaced(buffer.base, displacement);
}

std::byte* side_block(const Side& side, std::int32_t block) {
    std::int64_t displacement =
        side.blocks.empty() ? block * side.stride_bytes : side.blocks[block].displacement_bytes;
    return base::displaced(side.base, displacement);
}

// A smaller buffer is as well copied.
constexpr std::uint64_t kAdoptedBytesMin = 24 * 1024;

struct Range {
    const std::byte* begin;
    std::uint64_t bytes;
};

// Does it for each range in which blocks lie one behind the other. Returns: whether it was true for all of them.
template <class Do>
bool for_each_range(const Buffer& buffer, std::uint64_t block_bytes, Do act) {
    Range range{nullptr, 0};
    for (std::int32_t i = 0; i < buffer.block_count; ++i) {
        const std::byte* begin = user_block(buffer, i);
        const std::uint64_t bytes = bytes_of_block(buffer, i, block_bytes);
        if (bytes == 0) continue;
        if (range.bytes != 0 && begin == range.begin + range.bytes) {
            range.bytes += bytes;
            continue;
        }
        if (range.bytes != 0 && !act(range)) return false;
        range = {begin, bytes};
    }
    return range.bytes == 0 || act(range);
}

// How far behind its own address peers read memory in the segment: 0, or the way to its alias (heap/outside.h). None: they
// cannot.
using Shift = std::optional<std::ptrdiff_t>;

Shift shift_of(const Range& range) {
    const std::byte* at = heap::readable_at(range.begin, range.bytes);
    if (at == nullptr) return {};
    return static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(at) -
                                       reinterpret_cast<std::uintptr_t>(range.begin));
}

// Of all blocks, which have one for all of them.
Shift shift_of(const Buffer& buffer, std::uint64_t block_bytes) {
    Shift shift;
    const bool all = for_each_range(buffer, block_bytes, [&](const Range& range) {
        const Shift here = shift_of(range);
        if (!here || (shift && *shift != *here)) return false;
        shift = here;
        return true;
    });
    return all ? shift : Shift{};
}

// Memory outside the segment is seldom for one use alone, but often for few.
std::uint32_t adopting_call(const std::byte* at, const Demand& demand) {
    return heap::touches_segment(at, 1) ? demand.adopting_call
                                        : std::max(demand.adopting_call, kAdoptingCall);
}

// Of a private buffer that is adopted, now at the latest.
Shift adopted_shift(SeenBuffers& seen, const Buffer& buffer, const Demand& demand) {
    if (demand.adopting_call == 0 || demand.bytes <= kAdoptedBytesMin) return {};
    if (const Shift shift = shift_of(buffer, demand.block_bytes)) return shift;
    if (seen.count(buffer.base, demand.bytes) < adopting_call(buffer.base, demand)) return {};
    // Each takes a look at all of the process's mappings.
    constexpr int kRangesMost = 16;
    int ranges = 0;
    auto adopt = [&](const Range& range) {
        return ++ranges <= kRangesMost && heap::adopt(range.begin, range.bytes);
    };
    if (for_each_range(buffer, demand.block_bytes, adopt))
        if (const Shift shift = shift_of(buffer, demand.block_bytes)) return shift;
    seen.put_off(buffer.base, demand.bytes);
    return {};
}

// From the lowest to behind the highest byte of all blocks with layouts.
Range span_of(const Buffer& buffer, std::uint64_t block_bytes) {
    std::uintptr_t low = UINTPTR_MAX, high = 0;
    for (std::int32_t i = 0; i < buffer.block_count; ++i) {
        const std::uint64_t bytes = bytes_of_block(buffer, i, block_bytes);
        if (bytes == 0) continue;
        const Layout::Bounds bounds = buffer.layout_of_block(i).bounds(bytes);
        const auto at = reinterpret_cast<std::uintptr_t>(user_block(buffer, i));
        low = std::min(low, at + static_cast<std::uintptr_t>(bounds.low));
        high = std::max(high, at + static_cast<std::uintptr_t>(bounds.high));
    }
    return {reinterpret_cast<const std::byte*>(low), high - low};
}

// Whether blocks with layouts cover every byte of their span, so that all of its pages are the buffer's. No, too, of more
// runs than are worth a look.
bool is_covered(const Buffer& buffer, std::uint64_t block_bytes, const Range& span) {
    constexpr std::size_t kRunsMax = 64 * 1024;
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> runs;
    for (std::int32_t i = 0; i < buffer.block_count; ++i)
        for_each_run(user_block(buffer, i), buffer.layout_of_block(i), 0,
                     bytes_of_block(buffer, i, block_bytes), [&](const std::byte* at, std::uint64_t bytes) {
                         const auto begin = reinterpret_cast<std::uintptr_t>(at);
                         runs.emplace_back(begin, begin + bytes);
                         return runs.size() < kRunsMax;
                     });
    if (runs.size() >= kRunsMax) return false;
    std::ranges::sort(runs);
    auto covered = reinterpret_cast<std::uintptr_t>(span.begin);
    for (const auto& [begin, end] : runs) {
        if (begin > covered) return false;
        covered = std::max(covered, end);
    }
    return true;
}

// Of blocks with layouts that peers can read in the segment, now at the latest.
Shift shift_by_layout(SeenBuffers& seen, const Buffer& buffer, const Demand& demand) {
    constexpr std::uint64_t kWordsBytesMax = 48 * 1024;  // on the stage
    if (layouts_bytes(buffer) > kWordsBytesMax) return {};
    const Range span = span_of(buffer, demand.block_bytes);
    if (heap::is_shared(span.begin, span.bytes)) return 0;
    if (demand.adopting_call == 0) return {};
    if (const Shift shift = shift_of(span)) return shift;
    if (demand.bytes < span.bytes || seen.count(span.begin, span.bytes) < adopting_call(span.begin, demand))
        return {};
    if (heap::may_adopt(span.begin, span.bytes) && is_covered(buffer, demand.block_bytes, span) &&
        heap::adopt(span.begin, span.bytes))
        return shift_of(span);
    seen.put_off(span.begin, span.bytes);
    return {};
}

bool goes_by_layout(const Buffer& buffer, const Demand& demand) {
    return buffer.has_layouts() && demand.piped_above_bytes != 0 && demand.bytes > demand.piped_above_bytes;
}

struct Choice {
    Where where;
    std::ptrdiff_t shift_bytes = 0;
};

Choice choose(Store& store, const Buffer& buffer, const Demand& demand) {
    bool as_it_is = buffer.packer == nullptr && !demand.must_copy &&
                    (!demand.exposed || is_shared(buffer, demand.block_bytes));
    if (as_it_is || demand.bytes == 0) return {Where::user};
    // Received, too, where no other rank touches the buffer.
    if (goes_by_layout(buffer, demand)) return {Where::pipe};
    if (!demand.exposed) return {Where::private_room};
    if (buffer.packer == nullptr && !demand.must_copy)
        if (const Shift shift = adopted_shift(store.seen, buffer, demand)) return {Where::adopted, *shift};
    const bool may_pipe = demand.piped_above_bytes != 0 && buffer.packer == nullptr && !demand.must_copy;
    const bool is_small = demand.bytes <= (may_pipe ? demand.piped_above_bytes : kSideLimitBytes);
    return {is_small ? Where::ring : Where::shared_room};
}

// Plain private buffers are not doubled: another way to read them may be better than a copy of any size. That is not so
// where the network is far slower than a copy.
stats::Reason refusal(const Buffer& buffer, const Demand& demand) {
    if (demand.copies_any) return stats::Reason::none;
    if (buffer.packer != nullptr) return buffer.gapped ? stats::Reason::none : stats::Reason::datatype;
    return demand.must_copy ? stats::Reason::none : demand.if_private;
}

// Blocks that are each too small to ask the kernel about are asked about together. The memory between them may be
// anybody's: if the answer is no, the kernel is asked about each block by itself.
bool are_shared(const Buffer& buffer) {
    std::uint64_t small_bytes = 0;
    const std::byte *low = nullptr, *high = nullptr;
    for (const BlockAt& block : buffer.blocks) {
        if (block.bytes == 0) continue;
        const std::byte* at = base::displaced(buffer.base, block.displacement_bytes);
        if (!heap::is_shared(at, block.bytes)) return false;
        if (block.bytes >= heap::kAskedBytesMin) continue;
        low = small_bytes == 0 ? at : std::min(low, at);
        high = small_bytes == 0 ? at + block.bytes : std::max(high, at + block.bytes);
        small_bytes += block.bytes;
    }
    if (small_bytes < heap::kAskedBytesMin) return true;
    if (heap::is_mapped_here(low, static_cast<std::size_t>(high - low))) return true;
    return std::ranges::all_of(buffer.blocks, [&](const BlockAt& block) {
        return heap::is_mapped_here(base::displaced(buffer.base, block.displacement_bytes), block.bytes);
    });
}

void refresh(const Buffer& buffer, std::uint64_t block_bytes) {
    for_each_range(buffer, block_bytes, [](const Range& range) {
        heap::refresh_shadows(range.begin, range.bytes);
        return true;
    });
}

}  // namespace

std::byte* show_in_place(Store& store, std::byte* at, std::uint64_t bytes) {
    if (heap::is_shared(at, bytes)) return at;
    const Buffer buffer{.base = at, .block_count = 1};
    const Demand demand{.exposed = true,
                        .must_copy = false,
                        .if_private = stats::Reason::none,
                        .block_bytes = bytes,
                        .bytes = bytes,
                        .adopting_call = kAdoptingCall};
    const Shift shift = adopted_shift(store.seen, buffer, demand);
    if (!shift) return nullptr;
    refresh(buffer, bytes);
    return base::displaced(at, *shift);
}

bool is_shared(const Buffer& buffer, std::uint64_t block_bytes) {
    if (!buffer.blocks.empty()) return are_shared(buffer);
    // Equal strides: the outermost blocks decide.
    const std::byte* last = base::displaced(buffer.base, (buffer.block_count - 1) * buffer.stride_bytes);
    const std::byte* low = std::min<const std::byte*>(buffer.base, last);
    const std::byte* high = std::max<const std::byte*>(buffer.base, last) + block_bytes;
    return heap::is_shared(low, static_cast<std::size_t>(high - low));
}

namespace {

Side through_pipe(Side side, std::byte* base) {
    side.where = Where::pipe;
    side.piped = channel::Piped::address;
    side.refusal = stats::Reason::none;
    side.base = base;
    return side;
}

}  // namespace

Side plan_side(Store& store, const Buffer& buffer, const Demand& demand, Which which) {
    const Choice choice = choose(store, buffer, demand);
    Side side{.where = choice.where,
              .base = buffer.base,
              .shift_bytes = choice.shift_bytes,
              .stride_bytes = buffer.stride_bytes,
              .blocks = buffer.blocks};
    if (side.where == Where::pipe) {
        // A side that is only received is nobody's to read.
        const Shift shift =
            demand.exposed && !demand.must_copy ? shift_by_layout(store.seen, buffer, demand) : Shift{};
        side.piped = shift ? channel::Piped::shared : channel::Piped::pieces;
        side.shift_bytes = shift.value_or(0);
    }
    if (is_users(side.where) || side.where == Where::ring) return side;
    if (side.where == Where::shared_room) side.refusal = refusal(buffer, demand);
    if (demand.piped_above_bytes != 0 && side.refusal == demand.if_private)
        return through_pipe(side, buffer.base);
    if (side.refusal != stats::Reason::none) return side;
    side.base = side.where == Where::shared_room ? fetch_shared(store.shared_room(which), demand.bytes)
                                                 : fetch(store.private_room(which), demand.bytes);
    if (side.base == nullptr && side.where == Where::private_room) stop_without_memory(demand.bytes);
    if (side.base == nullptr && demand.piped_above_bytes != 0 && buffer.packer == nullptr)
        return through_pipe(side, buffer.base);
    if (side.base == nullptr)
        side.refusal = buffer.packer != nullptr ? stats::Reason::datatype
                       : demand.must_copy       ? stats::Reason::in_place
                                                : demand.if_private;
    return side;
}

void lay_out(Side& side, const Buffer& buffer, std::byte* base, std::uint64_t block_bytes,
             std::vector<BlockAt>& blocks) {
    if (is_users(side.where)) return;
    side.base = base;
    side.stride_bytes = static_cast<std::int64_t>(block_bytes);
    if (buffer.blocks.empty()) return;
    blocks.resize(buffer.blocks.size());
    std::int64_t at = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        blocks[i] = {at, buffer.blocks[i].bytes};
        at += static_cast<std::int64_t>(blocks[i].bytes);
    }
    side.blocks = blocks;
}

void fill_side(const Side& side, const Buffer& buffer, std::uint64_t block_bytes) {
    if (side.where == Where::adopted) refresh(buffer, block_bytes);
    if (side.where == Where::pipe && side.piped == channel::Piped::shared && buffer.has_layouts()) {
        const Range span = span_of(buffer, block_bytes);
        heap::refresh_shadows(span.begin, span.bytes);
    }
    if (is_users(side.where)) return;
    for (std::int32_t i = 0; i < buffer.block_count; ++i) {
        std::uint64_t bytes = bytes_of_block(buffer, i, block_bytes);
        if (bytes == 0) continue;
        if (buffer.has_layouts())
            copy_data(side_block(side, i), {}, 0, user_block(buffer, i), buffer.layout_of_block(i), 0, bytes);
        else if (buffer.packer != nullptr)
            buffer.packer->pack(i, side_block(side, i));
        else
            copy_block(side_block(side, i), user_block(buffer, i), bytes);
    }
}

void empty_side(const Side& side, const Buffer& buffer, std::uint64_t block_bytes) {
    if (is_users(side.where)) return;
    for (std::int32_t i = 0; i < buffer.block_count; ++i) {
        std::uint64_t bytes = bytes_of_block(buffer, i, block_bytes);
        if (bytes == 0) continue;
        if (buffer.has_layouts())
            copy_data(user_block(buffer, i), buffer.layout_of_block(i), 0, side_block(side, i), {}, 0, bytes);
        else if (buffer.packer != nullptr)
            buffer.packer->unpack(i, side_block(side, i));
        else
            copy_block(user_block(buffer, i), side_block(side, i), bytes);
    }
}

}  // namespace coco::blocks
