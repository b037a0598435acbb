// SPDX-License-Identifier: BSD-3-Clause
//
// The words of a layout:
//
//   loops around all pieces: their number, then a count and a stride of each
//   the number of pieces; of each: its offset, the bytes of a run, the number of its loops, a count and a
//   stride of each
#include "blocks/layout.h"

#include <algorithm>
#include <cstring>

#include "base/bits.h"
#include "base/check.h"
#include "base/index.h"
#include "blocks/copy_block.h"

namespace coco::blocks {
namespace {

// Puts a loop around others; one that goes on where they end becomes one with them.
void put_around(std::vector<Layout::Loop>& loops, std::int64_t count, std::int64_t stride_bytes) {
    if (!loops.empty() && stride_bytes == loops.front().count * loops.front().stride_bytes)
        loops.front().count *= count;
    else
        loops.insert(loops.begin(), {count, stride_bytes});
}

std::int64_t product_of(const std::vector<Layout::Loop>& loops) {
    std::int64_t product = 1;
    for (const Layout::Loop& loop : loops) product *= loop.count;
    return product;
}

// Moves the bounds of what is repeated.
void widen(Layout::Bounds& bounds, const std::vector<Layout::Loop>& loops) {
    for (const Layout::Loop& loop : loops) {
        const std::int64_t last = (loop.count - 1) * loop.stride_bytes;
        (last < 0 ? bounds.low : bounds.high) += last;
    }
}

void write_loops(std::vector<std::int64_t>& words, const std::vector<Layout::Loop>& loops) {
    words.push_back(static_cast<std::int64_t>(loops.size()));
    for (const Layout::Loop& loop : loops) words.insert(words.end(), {loop.count, loop.stride_bytes});
}

// The words of the piece behind one.
const std::int64_t* behind(const std::int64_t* piece) { return piece + 3 + 2 * piece[2]; }

std::int64_t bytes_of_piece(const std::int64_t* piece) {
    std::int64_t bytes = piece[1];
    for (std::int64_t i = 0; i < piece[2]; ++i) bytes *= piece[3 + 2 * i];
    return bytes;
}

template <std::size_t kBytes>
void copy_fixed(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, kBytes);
}

template <class Byte>
struct Runs {
    Byte* at;
    std::int64_t stride_bytes;
};
// `count` runs of `bytes` each.
void copy_runs(Runs<std::byte> to, Runs<const std::byte> from, std::int64_t bytes, std::int64_t count,
               bool streaming) {
    switch (bytes) {
        case 4:
            return copy_fixed<4>(to.at, to.stride_bytes, from.at, from.stride_bytes, count);
        case 8:
            return copy_fixed<8>(to.at, to.stride_bytes, from.at, from.stride_bytes, count);
        case 16:
            return copy_fixed<16>(to.at, to.stride_bytes, from.at, from.stride_bytes, count);
        case 24:
            return copy_fixed<24>(to.at, to.stride_bytes, from.at, from.stride_bytes, count);
        case 32:
            return copy_fixed<32>(to.at, to.stride_bytes, from.at, from.stride_bytes, count);
        case 64:
            return copy_fixed<64>(to.at, to.stride_bytes, from.at, from.stride_bytes, count);
        default:
            for (std::int64_t i = 0; i < count; ++i)
                (streaming ? copy_streaming : copy_block)(
                    to.at + i * to.stride_bytes, from.at + i * from.stride_bytes, base::index(bytes));
    }
}

}  // namespace

std::uint64_t words_of(const std::int64_t* words) {
    const std::int64_t* at = words + 1 + 2 * words[0];
    COCO_CHECK_DEAR(words[0] >= 0 && *at >= 0, "the words of a layout count its loops and its pieces");
    std::int64_t pieces = *at++;
    for (; pieces != 0; --pieces) at = behind(at);
    return static_cast<std::uint64_t>(at - words);
}

Layout Layout::run(std::int64_t offset_bytes, std::uint64_t bytes) {
    COCO_CHECK(bytes <= INT64_MAX, "a run is no longer than memory");
    Layout made;
    if (bytes != 0) made.pieces_.push_back({offset_bytes, static_cast<std::int64_t>(bytes), {}});
    return made;
}

Layout Layout::bounded(std::size_t pieces_max) && {
    COCO_CHECK(pieces_max >= 1 && pieces_max <= kPiecesMax, "a layout has a bounded number of pieces");
    pieces_max_ = pieces_max;
    return std::move(*this);
}

Layout Layout::none() {
    Layout made;
    made.is_valid_ = false;
    return made;
}

std::uint64_t Layout::bytes() const {
    std::int64_t bytes = 0;
    for (const Piece& piece : pieces_) bytes += piece.bytes * product_of(piece.loops);
    return static_cast<std::uint64_t>(bytes * product_of(loops_));
}

Layout::Bounds Layout::bounds() const {
    if (pieces_.empty()) return {0, 0};
    Bounds all{pieces_[0].offset_bytes, pieces_[0].offset_bytes};
    for (const Piece& piece : pieces_) {
        Bounds one{piece.offset_bytes, piece.offset_bytes + piece.bytes};
        widen(one, piece.loops);
        all = {std::min(all.low, one.low), std::max(all.high, one.high)};
    }
    widen(all, loops_);
    return all;
}

void Layout::repeat(std::int64_t count, std::int64_t stride_bytes) {
    // Fewer than none: the MPI library tells of its types otherwise than is known.
    if (count < 0) *this = none();
    if (count == 0) *this = Layout().bounded(pieces_max_);  // of whatever there are none
    if (pieces_.empty() || count == 1) return;
    Piece& first = pieces_[0];
    if (pieces_.size() > 1)
        put_around(loops_, count, stride_bytes);
    else if (first.loops.empty() && stride_bytes == first.bytes)
        first.bytes *= count;
    else
        put_around(first.loops, count, stride_bytes);
    if (loops_.size() > kLoopsMax || first.loops.size() > kLoopsMax) *this = none();
}

void Layout::shift(std::int64_t bytes) {
    for (Piece& piece : pieces_) piece.offset_bytes += bytes;
}

// Turns the loops around all pieces into more pieces. Returns: false if they would be too many.
bool Layout::expand() {
    COCO_CHECK(!pieces_.empty(), "what is expanded has pieces");
    while (!loops_.empty()) {
        const Loop loop = loops_.back();
        if (base::index(loop.count) > kPiecesMax / pieces_.size()) return false;
        loops_.pop_back();
        const std::vector<Piece> once = pieces_;
        for (std::int64_t i = 1; i < loop.count; ++i)
            for (Piece piece : once) {
                piece.offset_bytes += i * loop.stride_bytes;
                pieces_.push_back(std::move(piece));
            }
    }
    return true;
}

// A run that goes on where the last one ends becomes one with it, and pieces that are alike, in even strides,
// a loop.
void Layout::append_piece(Piece piece) {
    Piece* last = pieces_.empty() ? nullptr : &pieces_.back();
    const std::int64_t stride = last != nullptr ? piece.offset_bytes - last->offset_bytes : 0;
    if (last != nullptr && last->loops.empty() && piece.loops.empty() && stride == last->bytes) {
        last->bytes += piece.bytes;
        return;
    }
    if (last != nullptr && last->bytes == piece.bytes) {
        if (last->loops == piece.loops && last->loops.size() < kLoopsMax) {
            last->loops.insert(last->loops.begin(), {2, stride});
            return;
        }
        const bool is_next = !last->loops.empty() &&
                             std::ranges::equal(std::span(last->loops).subspan(1), piece.loops) &&
                             stride == last->loops[0].count * last->loops[0].stride_bytes;
        if (is_next) {
            ++last->loops[0].count;
            return;
        }
    }
    pieces_.push_back(std::move(piece));
}

void Layout::append(Layout other) {
    if (!is_valid_ || other.pieces_.empty()) {
        is_valid_ = is_valid_ && other.is_valid_;
        return;
    }
    if (pieces_.empty()) {
        *this = std::move(other);
        return;
    }
    pieces_max_ = std::min(pieces_max_, other.pieces_max_);
    bool fits = other.is_valid_ && expand() && other.expand();
    for (std::size_t i = 0; fits && i < other.pieces_.size(); ++i) {
        append_piece(std::move(other.pieces_[i]));
        fits = pieces_.size() <= pieces_max_;
    }
    if (!fits) *this = none();
}

std::vector<std::int64_t> Layout::words() const {
    COCO_CHECK(is_valid_, "a layout that is not valid has no words");
    std::vector<std::int64_t> words;
    write_loops(words, loops_);
    words.push_back(static_cast<std::int64_t>(pieces_.size()));
    for (const Piece& piece : pieces_) {
        words.insert(words.end(), {piece.offset_bytes, piece.bytes});
        write_loops(words, piece.loops);
    }
    return words;
}

void Cursor::Nest::add(std::int64_t count, std::int64_t stride_bytes) {
    COCO_CHECK_DEAR(count >= 1, "a loop of a block goes round");
    COCO_CHECK_DEAR(size < std::size(levels) || count == 1, "a nest has room for its loops");
    if (count != 1) levels[size++] = {count, stride_bytes, 0};
}

std::int64_t Cursor::Nest::go_to(std::int64_t number) {
    COCO_CHECK_DEAR(number >= 0, "a nest begins with its first place");
    std::int64_t moved = 0;
    for (std::size_t i = size; i-- > 0; number /= levels[i].count) {
        levels[i].index = number % levels[i].count;
        moved += levels[i].index * levels[i].stride_bytes;
    }
    return moved;
}

bool Cursor::Nest::step(std::int64_t rounds, std::int64_t& moved) {
    COCO_CHECK_DEAR(rounds >= 1, "a nest goes on, not back");
    for (std::size_t i = size; i-- > 0; rounds = 1) {
        Level& level = levels[i];
        level.index += rounds;
        COCO_CHECK_DEAR(level.index <= level.count, "a nest takes no more rounds than are left");
        moved += rounds * level.stride_bytes;
        if (level.index < level.count) return true;
        moved -= level.count * level.stride_bytes;
        level.index = 0;
    }
    return false;
}

Cursor::Cursor(std::byte* base, const BlockLayout& layout, std::uint64_t at) : base_(base), at_(base) {
    static constexpr std::int64_t kContiguous[] = {0, 1, 0, INT64_MAX, 0};
    const std::int64_t* words = layout.words != nullptr ? layout.words : kContiguous;
    const std::int64_t loops = words[0];
    words_ = words + 2 + 2 * loops;
    pieces_ = words[1 + 2 * loops];
    if (pieces_ == 0) return;
    // A single piece's loops and those around it are one nest.
    Nest& around = pieces_ == 1 ? inner_ : outer_;
    if (layout.words != nullptr) around.add(layout.count, layout.extent_bytes);
    for (std::int64_t i = 0; i < loops; ++i) around.add(words[1 + 2 * i], words[2 + 2 * i]);
    auto rest = static_cast<std::int64_t>(at);
    piece_ = words_;
    if (pieces_ > 1) {
        std::int64_t round_bytes = 0;
        for (const auto* piece = words_; piece_number_ < pieces_; ++piece_number_, piece = behind(piece))
            round_bytes += bytes_of_piece(piece);
        piece_number_ = 0;
        base_ = base::displaced(base, outer_.go_to(rest / round_bytes));
        for (rest %= round_bytes; rest >= bytes_of_piece(piece_); piece_ = behind(piece_), ++piece_number_)
            rest -= bytes_of_piece(piece_);
    }
    for (std::int64_t i = 0; i < piece_[2]; ++i) inner_.add(piece_[3 + 2 * i], piece_[4 + 2 * i]);
    COCO_CHECK_DEAR(piece_[1] > 0, "a piece has bytes");
    run_bytes_ = piece_[1];
    done_bytes_ = rest % run_bytes_;
    at_ = base::displaced(base_, piece_[0] + inner_.go_to(rest / run_bytes_));
}

void Cursor::next_piece() {
    piece_ = behind(piece_);
    if (++piece_number_ == pieces_) {
        std::int64_t moved = 0;
        outer_.step(1, moved);
        base_ = base::displaced(base_, moved);
        piece_ = words_;
        piece_number_ = 0;
    }
    inner_.size = 0;
    for (std::int64_t i = 0; i < piece_[2]; ++i) inner_.add(piece_[3 + 2 * i], piece_[4 + 2 * i]);
    run_bytes_ = piece_[1];
    at_ = base::displaced(base_, piece_[0]);
}

void Cursor::advance(std::int64_t bytes) {
    COCO_CHECK_DEAR(bytes > 0, "a cursor moves forward");
    COCO_CHECK_DEAR(bytes <= run_bytes_ - done_bytes_ || (done_bytes_ == 0 && bytes % run_bytes_ == 0),
                    "a cursor moves within a run, or by whole runs");
    COCO_CHECK_DEAR(bytes <= run_bytes_ || bytes / run_bytes_ <= stretch().count,
                    "a cursor moves within a stretch");
    if (done_bytes_ + bytes < run_bytes_) {
        done_bytes_ += bytes;
        return;
    }
    const std::int64_t runs = done_bytes_ != 0 || bytes == run_bytes_ ? 1 : bytes / run_bytes_;
    done_bytes_ = 0;
    std::int64_t moved = 0;
    if (inner_.step(runs, moved))
        at_ = base::displaced(at_, moved);
    else if (pieces_ > 1)
        next_piece();
}

void copy_data(const InData<std::byte>& to, const InData<const std::byte>& from, std::uint64_t bytes,
               bool streaming) {
    auto left = static_cast<std::int64_t>(bytes);
    COCO_CHECK_DEAR(left >= 0, "a copy is no longer than memory");
    if (left == 0) return;
    Cursor target(to.block, to.layout, to.place),
        source(const_cast<std::byte*>(from.block), from.layout, from.place);
    for (;;) {
        const Cursor::Stretch t = target.stretch(), s = source.stretch();
        // The longer runs are cut into some of the shorter ones, as many as fit.
        const std::int64_t run = std::min(t.bytes, s.bytes);
        const std::int64_t t_runs = t.bytes == run ? t.count : t.bytes / run;
        const std::int64_t s_runs = s.bytes == run ? s.count : s.bytes / run;
        const std::int64_t runs = std::min({t_runs, s_runs, left / run});
        if (runs == 0)
            return copy_block(t.at, s.at, static_cast<std::uint64_t>(left));  // the last run, in part
        copy_runs({t.at, t.bytes == run ? t.stride_bytes : run},
                  {s.at, s.bytes == run ? s.stride_bytes : run}, run, runs, streaming);
        left -= runs * run;
        if (left == 0) return;
        target.advance(runs * run);
        source.advance(runs * run);
    }
}

}  // namespace coco::blocks
