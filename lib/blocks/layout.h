// SPDX-License-Identifier: BSD-3-Clause
//
// Where the bytes of a datatype with holes lie, so that a block can be copied from one layout to another in a
// single pass, without a packed copy in between.
//
//   piece    a run of bytes, repeated by nested loops: a subarray or a vector is one piece
//   layout   pieces in the order of the type's signature, all of them repeated by loops around them
//
// A layout is built once for each type (dispatch/datatype.cc). Its words are plain numbers without addresses,
// which a rank writes into shared memory for its peers. Thread safety: a layout that is built is only read.
// Fails: a type of too many pieces or loops has no layout (is_valid()); the MPI library packs it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"

namespace coco::blocks {

class Layout {
  public:
    // The most loops around a piece, and the most pieces: beyond, packing is no slower.
    static constexpr std::size_t kLoopsMax = 8, kPiecesMax = 2048;

    struct Loop {
        std::int64_t count, stride_bytes;
        friend bool operator==(const Loop&, const Loop&) = default;
    };

    // No bytes at all.
    Layout() = default;
    // One run, from the element's origin.
    static Layout run(std::int64_t offset_bytes, std::uint64_t bytes);
    static Layout none();  // not valid
    // The same, of which nothing is made that has more pieces.
    Layout bounded(std::size_t pieces_max) &&;

    bool is_valid() const { return is_valid_; }
    std::uint64_t bytes() const;
    // Whether all bytes lie behind one another, in the order of the signature; so do no bytes.
    bool is_run() const {
        return is_valid_ && (pieces_.empty() || (pieces_.size() == 1 && pieces_[0].loops.empty()));
    }
    // The first byte of the lowest piece, and the byte behind the highest; 0 and 0 of no bytes.
    struct Bounds {
        std::int64_t low, high;
    };
    Bounds bounds() const;

    // All of it, so many times, so far from one another.
    void repeat(std::int64_t count, std::int64_t stride_bytes);
    void shift(std::int64_t bytes);
    // Another layout's bytes behind this one's, in the order of the signature.
    void append(Layout other);

    // As numbers: see Cursor.
    std::vector<std::int64_t> words() const;

  private:
    struct Piece {
        std::int64_t offset_bytes;
        std::int64_t bytes;
        std::vector<Loop> loops;  // the outermost first
    };
    bool expand();
    void append_piece(Piece piece);

    std::vector<Loop> loops_;  // around all pieces; empty if there is only one
    std::vector<Piece> pieces_;
    std::size_t pieces_max_ = kPiecesMax;
    bool is_valid_ = true;
};

// A block by its layout: `count` elements, `extent_bytes` apart, each with the layout's words; null:
// contiguous. Blocks are named by the address of the lowest byte of their first element's data.
struct BlockLayout {
    const std::int64_t* words = nullptr;
    std::int64_t count = 0;
    std::int64_t extent_bytes = 0;
    std::int64_t span_bytes = 0;  // from an element's lowest byte to behind its highest

    // Of a block of so many bytes of data: where its lowest and behind its highest byte is, from its address.
    Layout::Bounds bounds(std::uint64_t bytes) const {
        if (words == nullptr) return {0, static_cast<std::int64_t>(bytes)};
        COCO_CHECK_DEAR(count >= 1 && span_bytes >= 0, "a block with a layout has elements");
        const std::int64_t last = (count - 1) * extent_bytes;
        return {last < 0 ? last : 0, (last < 0 ? 0 : last) + span_bytes};
    }
};
// How many words a layout has.
std::uint64_t words_of(const std::int64_t* words);

// A place in the data of a block: `place` counts bytes of data, without holes.
template <class Byte>
struct InData {
    Byte* block;
    BlockLayout layout = {};
    std::uint64_t place = 0;
};
// Copies `bytes` of data from a place in one block to a place in another. streaming: long runs by streaming
// stores. Requires: so many bytes are in both.
void copy_data(const InData<std::byte>& to, const InData<const std::byte>& from, std::uint64_t bytes,
               bool streaming = false);

// Calls act(address, bytes) for each run of `bytes` of a block's data from place `at` on, until it returns
// false.
template <class Act>
void for_each_run(std::byte* base, const BlockLayout& layout, std::uint64_t at, std::uint64_t bytes, Act act);

// A place in a block's data, which moves forward.
class Cursor {
  public:
    Cursor(std::byte* base, const BlockLayout& layout, std::uint64_t at);

    // The runs from here on that lie in one stride: `count` of `bytes` each. The first may have begun: then
    // it is alone.
    struct Stretch {
        std::byte* at;
        std::int64_t bytes, count, stride_bytes;
    };
    Stretch stretch() const {
        if (done_bytes_ != 0 || inner_.size == 0) return {at_ + done_bytes_, run_bytes_ - done_bytes_, 1, 0};
        const Nest::Level& last = inner_.levels[inner_.size - 1];
        return {at_, run_bytes_, last.count - last.index, last.stride_bytes};
    }
    // Requires: bytes are no more than what stretch() says, and either less than a run's or whole runs.
    void advance(std::int64_t bytes);

  private:
    // Loops, the outermost first, and where they are.
    struct Nest {
        struct Level {
            std::int64_t count, stride_bytes, index;
        };
        std::size_t size = 0;
        Level levels[2 * Layout::kLoopsMax + 1];

        void add(std::int64_t count, std::int64_t stride_bytes);
        // So far from the first place is the `number`-th one, which it goes to.
        std::int64_t go_to(std::int64_t number);
        // Goes on by some rounds of the innermost loop. Adds to `moved` by how much. Returns: false at the
        // end.
        bool step(std::int64_t rounds, std::int64_t& moved);
    };
    void next_piece();

    const std::int64_t* words_;  // the first piece's
    const std::int64_t* piece_ = nullptr;
    std::int64_t pieces_ = 1;
    std::int64_t piece_number_ = 0;
    std::byte* base_;  // where the round of all pieces begins that is under way
    std::byte* at_;    // where the run begins
    std::int64_t run_bytes_ = 0;
    std::int64_t done_bytes_ = 0;  // of that run
    Nest outer_, inner_;
};

template <class Act>
void for_each_run(std::byte* base, const BlockLayout& layout, std::uint64_t at, std::uint64_t bytes,
                  Act act) {
    auto left = static_cast<std::int64_t>(bytes);
    for (Cursor cursor(base, layout, at); left > 0;) {
        const Cursor::Stretch stretch = cursor.stretch();
        const std::int64_t run = left < stretch.bytes ? left : stretch.bytes;
        if (!act(stretch.at, static_cast<std::uint64_t>(run))) return;
        left -= run;
        if (left > 0) cursor.advance(run);
    }
}

}  // namespace coco::blocks
