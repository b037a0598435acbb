// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that calls on a channel keep from one to the next, so that a call allocates nothing once it has
// grown: where all ranks' blocks are, tables of blocks, and room for copies of buffers. A channel runs one
// call at a time, so that one store serves all its calls. Thread safety: that of the channel.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/index.h"
#include "blocks/buffer.h"
#include "schedule/place.h"

namespace coco::blocks {

// Where one area of a rank is in this process, in the call that runs.
struct Row {
    std::byte* base;
    std::int64_t stride_bytes;
};

// A rank's block tables in a v or w form: `staged` for its scratch, or `send` and `recv` for its buffers.
struct Table {
    const StagedBlock* staged;
    const BlockAt* send;
    const BlockAt* recv;
};

// Memory that grows and is kept.
struct Room {
    std::byte* memory = nullptr;
    std::uint64_t bytes = 0;
};

// The two buffers of a call.
enum class Which : std::uint8_t { send, recv };

struct Store {
    std::vector<Row> rows;      // kAreas * ranks
    std::vector<Table> tables;  // v and w forms, by rank
    std::vector<BlockAt> send_blocks, recv_blocks;
    // Copies of buffers that cannot be used as they are: on the shared heap, and where no other rank looks.
    Room shared_send, shared_recv, private_send, private_recv;

    void make_rows(std::int32_t ranks) {
        COCO_CHECK_DEAR(ranks >= 1, "a call has ranks");
        rows.resize(base::index(schedule::kAreas) * base::index(ranks));
    }
    Row& row(schedule::Area area, std::int32_t owner, std::int32_t ranks) {
        COCO_CHECK_DEAR(owner >= 0 && owner < ranks, "an area belongs to one of the ranks");
        COCO_CHECK_DEAR(rows.size() >= base::index(schedule::kAreas) * base::index(ranks),
                        "rows were made for all ranks");
        return rows[base::index(area) * base::index(ranks) + base::index(owner)];
    }
    std::vector<BlockAt>& blocks_of(Which which) { return which == Which::send ? send_blocks : recv_blocks; }
    Room& shared_room(Which which) { return which == Which::send ? shared_send : shared_recv; }
    Room& private_room(Which which) { return which == Which::send ? private_send : private_recv; }
    // Gives the memory of copies back. Requires: no call runs.
    void release_rooms();
};

// Memory of a room, `bytes` at least; what was in it is lost when it grows. Returns: null if there is none.
std::byte* fetch(Room& room, std::uint64_t bytes);
// The same on the shared heap. Returns: null if there is none there.
std::byte* fetch_shared(Room& room, std::uint64_t bytes);
// Ends the process: there is no memory to pack a buffer into, and the other ranks are in the call.
[[noreturn]] void stop_without_memory(std::uint64_t bytes);

}  // namespace coco::blocks
