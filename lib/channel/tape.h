// SPDX-License-Identifier: BSD-3-Clause
//
// A root's tape: bcasts as records one after the other, so that several small ones share a cache line and the
// root runs far ahead of its readers. Every rank reads every record of every root, in order, and so knows
// where the next one will be.
//
//   record   a header word, then payload in words. A header is 0 until its record is there: the root clears
//            the next header before it publishes a record.
//   payload  the buffer itself, or a Whereabouts
//   wrap     a header that says: go on at the begin of the tape
//
// Writing over old records waits until all ranks have finished their calls: Ring keeps the books.
#pragma once
#include <cstdint>

#include "base/check.h"
#include "channel/control.h"

namespace coco::channel {

// A ring of bytes, which knows for each sector the last call in which others may read it.
template <std::uint64_t kBytes, std::uint64_t kSectors = kRingSectors>
class Ring {
  public:
    struct Piece {
        std::uint64_t begin;
        std::uint64_t
            wait_epoch;  // all ranks must have finished this call before the piece is written; 0: none
        bool wrapped;
    };
    explicit Ring(std::uint64_t head = 0) : head_(head), entered_(head / kSectorBytes) {
        COCO_CHECK(head <= kBytes, "a ring goes on where it ended");
    }

    // The next `bytes` for call `epoch`; `slack` bytes behind them are written too, but not taken.
    // Requires: bytes + slack <= kBytes.
    Piece take(std::uint64_t bytes, std::uint64_t slack, std::uint64_t epoch) {
        COCO_CHECK_DEAR(bytes != 0 && bytes + slack <= kBytes, "what is taken fits into the ring");
        COCO_CHECK_DEAR(epoch != 0, "a piece of a ring belongs to a call");
        Piece piece{head_, 0, head_ + bytes + slack > kBytes};
        if (piece.wrapped) {
            piece.begin = 0;
            entered_ = kNone;
            lap_bytes_ = kBytes;
        }
        std::uint64_t last = (piece.begin + bytes + slack - 1) / kSectorBytes;
        // Sectors that this lap has entered already were waited for then.
        for (std::uint64_t s = entered_ + 1; s <= last; ++s)
            if (epochs_[s] > piece.wait_epoch) piece.wait_epoch = epochs_[s];
        for (std::uint64_t s = piece.begin / kSectorBytes; s <= last; ++s) epochs_[s] = epoch;
        // Where the lap ended a wrap is written, which is read in this call.
        if (piece.wrapped && head_ < kBytes) epochs_[head_ / kSectorBytes] = epoch;
        entered_ = last;
        head_ = piece.begin + bytes;
        return piece;
    }
    std::uint64_t head() const { return head_; }

    // The first laps are short, and each is a sector longer than the one before: each page that is used for
    // the first time costs the owner and all readers a fault, while long laps are faster in the end. Whether
    // the lap is long enough to end here.
    bool may_end_lap() const { return head_ >= lap_bytes_; }
    // Has the next piece, of so many bytes, begin where the ring begins, if nobody reads there behind call
    // `done_epoch`. Requires: may_end_lap(); all ranks have finished that call; readers need no wrap.
    void end_lap(std::uint64_t bytes, std::uint64_t done_epoch) {
        COCO_CHECK_DEAR(may_end_lap(), "a lap ends when it is long enough");
        COCO_CHECK_DEAR(bytes != 0 && bytes <= kBytes, "what is taken fits into the ring");
        for (std::uint64_t s = 0; s <= (bytes - 1) / kSectorBytes; ++s)
            if (epochs_[s] > done_epoch) return;
        head_ = 0;
        entered_ = kNone;
        lap_bytes_ += kSectorBytes;
    }

  private:
    static constexpr std::uint64_t kSectorBytes = kBytes / kSectors;
    static constexpr std::uint64_t kNone = UINT64_MAX;  // + 1 is the first sector

    std::uint64_t head_;
    std::uint64_t entered_;
    std::uint64_t lap_bytes_ = kSectorBytes;  // that a lap has at least before it may end early
    std::uint64_t epochs_[kSectors] = {};
};

// Where a buffer is that is not in its record.
struct Whereabouts {
    std::uint64_t at;             // staged, segmented: the scratch; direct: the buffer
    std::uint64_t segment_bytes;  // segmented
};

// A header word: never 0. Its low bits tell how the record is published, and the call's number, by which a
// reader tells it from a record that it never stepped over, as it took that call for empty. The length lies
// above these bits.
struct Header {
    std::uint64_t word;

    static Header of(Publish publish, std::uint64_t bytes) {
        COCO_CHECK_DEAR(bytes < std::uint64_t{1} << 56, "the length of a record fits into its header");
        return {bytes << 8 | (static_cast<std::uint64_t>(publish) + 2)};
    }
    static constexpr std::uint64_t kWrap = 1;
    // The header with the number of the call that it belongs to.
    Header of_call(std::uint64_t epoch) const { return {word | epoch % kTurns << kPublishBits}; }
    bool is_of_call(std::uint64_t epoch) const { return (word >> kPublishBits) % kTurns == epoch % kTurns; }
    Publish publish() const { return static_cast<Publish>((word & ((1 << kPublishBits) - 1)) - 2); }
    std::uint64_t bytes() const { return word >> 8; }
    // Bytes of the whole record on the tape.
    std::uint64_t record_bytes() const {
        std::uint64_t payload = publish() == Publish::inlined ? bytes() : sizeof(Whereabouts);
        return 8 + base::round_up(payload, 8);
    }

  private:
    static constexpr int kPublishBits = 3;
    static constexpr std::uint64_t kTurns = 32;
    static_assert(static_cast<int>(Publish::refuse) + 2 < 1 << kPublishBits);
};

}  // namespace coco::channel
