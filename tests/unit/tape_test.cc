// SPDX-License-Identifier: BSD-3-Clause
//
// The books of a ring: nothing is written over before all who may read it are done. Checked against a plain
// record of the last call that reads each word, for random sequences. A wrap at the end of a lap that was
// written over unread once made a bcast hang in one run of many.
#include "channel/tape.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <vector>

#include "channel/channel.h"

using coco::channel::Ring;

namespace {

constexpr std::uint64_t kBytes = 4096, kWord = 8;

// With slack, as on a tape: a word behind each piece is cleared, and where a lap ends a wrap is written.
void check_books(std::uint32_t seed, std::uint64_t most_words, std::uint64_t slack) {
    std::mt19937 random(seed);
    Ring<kBytes, 16> ring;
    std::vector<std::uint64_t> last_reader(kBytes / kWord, 0);
    std::uint64_t all_done = 0;  // what the waits have told us so far
    for (std::uint64_t epoch = 1; epoch < 3000; ++epoch) {
        std::uint64_t bytes = kWord * (1 + random() % most_words);
        if (slack == 0 && ring.may_end_lap()) {
            all_done = std::max(all_done, epoch - std::min<std::uint64_t>(epoch, 1 + random() % 20));
            ring.end_lap(bytes, all_done);
        }
        const std::uint64_t here = ring.head();
        auto piece = ring.take(bytes, slack, epoch);
        all_done = std::max(all_done, piece.wait_epoch);
        REQUIRE(all_done < epoch);
        REQUIRE(piece.begin + bytes + slack <= kBytes);
        REQUIRE(ring.head() == piece.begin + bytes);
        std::uint64_t unread = 0;
        for (std::uint64_t at = piece.begin; at < piece.begin + bytes + slack; at += kWord) {
            // The word where a record begins was written by the one before, for this record's readers.
            bool own_header = slack != 0 && !piece.wrapped && at == here;
            unread += !own_header && last_reader[at / kWord] > all_done;
            last_reader[at / kWord] = epoch;
        }
        REQUIRE(unread == 0);
        if (slack == 0) continue;
        last_reader[(piece.begin + bytes) / kWord] = epoch + 1;  // read when the next record is looked for
        if (piece.wrapped) last_reader[here / kWord] = epoch;
    }
}

}  // namespace

TEST_CASE("a ring never writes over what may still be read", "[tape]") {
    for (std::uint32_t seed = 1; seed <= 40; ++seed)
        for (std::uint64_t most_words : {1, 2, 5, 30, 100, 128, 500})
            check_books(seed, most_words, most_words <= 128 ? kWord : 0);
}

// Each page of a ring costs its owner and all readers a fault when it is first used.
TEST_CASE("a ring's first pieces lie on few sectors", "[tape]") {
    constexpr std::uint64_t kSectorBytes = kBytes / 16;
    Ring<kBytes, 16> ring;
    std::uint64_t end = 0;
    std::uint64_t epoch = 1;
    auto take_until = [&](std::uint64_t last) {
        for (; epoch <= last; ++epoch) {
            if (ring.may_end_lap()) ring.end_lap(kSectorBytes, epoch - std::min<std::uint64_t>(epoch, 2));
            end = std::max(end, ring.take(kSectorBytes, 0, epoch).begin + kSectorBytes);
        }
    };
    take_until(5);
    REQUIRE(end <= 3 * kSectorBytes);
    take_until(20);
    REQUIRE(end <= 6 * kSectorBytes);
    take_until(300);
    REQUIRE(end == kBytes);
}

TEST_CASE("a ring whose readers are never known to be done has no short laps", "[tape]") {
    Ring<kBytes, 16> ring;
    for (std::uint64_t epoch = 1; epoch <= 3 * kBytes / 64; ++epoch) {
        if (ring.may_end_lap()) {
            REQUIRE((epoch <= kBytes / 64 || ring.head() == kBytes));
            ring.end_lap(64, 0);
        }
        REQUIRE(ring.take(64, 0, epoch).begin == (epoch - 1) * 64 % kBytes);
    }
}
