// SPDX-License-Identifier: BSD-3-Clause
#include "bench/cache/replay.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <random>

#include "base/check.h"
#include "base/index.h"

namespace coco::cache {
namespace {

using base::index;
using schedule::Act;
using schedule::Area;
using schedule::Place;
using schedule::Step;

constexpr std::uint64_t kSmallestLarge = 16384;  // of jemalloc: from here on a buffer has pages to itself

std::uint64_t rounded(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// The bytes that jemalloc sets aside for a small buffer: four sizes for each power of two.
std::uint64_t class_of(std::uint64_t bytes) {
    return rounded(bytes,
                   std::max<std::uint64_t>(16, std::bit_floor(std::max<std::uint64_t>(bytes, 2) - 1) / 4));
}

// Where buffers lie. Each rank has pages of its own, which lie anywhere in memory. As jemalloc gives them,
// two small buffers of a size follow each other, and a large one begins at a random line of a page.
class Memory {
  public:
    Memory(const Machine& machine, const Call& call, const Replay& how, std::uint64_t scratch_blocks)
        : line_bytes_(machine.line_bytes), block_bytes_(call.block_bytes), page_bytes_(how.page_bytes) {
        const bool personal = call.exchange == algorithms::Exchange::alltoall;
        const std::uint64_t ranks = index(call.ranks);
        bytes_ = {(personal ? ranks : 1) * block_bytes_, ranks * block_bytes_, scratch_blocks * block_bytes_};
        std::mt19937 random(how.seed);
        starts_.resize(ranks);
        for (auto& starts : starts_) lay_out(starts, random);
        frames_.resize(ranks * pages_);
        std::iota(frames_.begin(), frames_.end(), 0);
        for (std::size_t i = frames_.size(); i > 1; --i) std::swap(frames_[i - 1], frames_[random() % i]);
    }

    std::uint64_t lines() const { return frames_.size() * page_bytes_ / line_bytes_; }
    std::uint64_t bytes(Area area) const { return bytes_[static_cast<std::size_t>(area)]; }
    // The line of a byte of a rank's area.
    Line line(std::int32_t owner, Area area, std::uint64_t at) const {
        const std::uint64_t byte = offset(owner, area) + at;
        const std::uint64_t frame = frames_[index(owner) * pages_ + byte / page_bytes_];
        return static_cast<Line>((frame * page_bytes_ + byte % page_bytes_) / line_bytes_);
    }
    std::uint64_t offset(std::int32_t owner, Area area) const {
        return starts_[index(owner)][static_cast<std::size_t>(area)];
    }

  private:
    using Areas = std::array<std::uint64_t, schedule::kAreas>;

    void lay_out(Areas& starts, std::mt19937& random) {
        std::uint64_t end = 0;
        for (std::size_t a = 0; a < starts.size(); ++a) {
            const bool large = bytes_[a] >= kSmallestLarge;
            const std::uint64_t gap = large ? random() % (4096 / line_bytes_) * line_bytes_ : 0;
            const bool follows = a == 1 && !large && class_of(bytes_[0]) == class_of(bytes_[1]);
            starts[a] = (follows ? end : rounded(end, 4096)) + gap;
            end = starts[a] + class_of(bytes_[a]);
        }
        pages_ = std::max(pages_, rounded(end + 4096, page_bytes_) / page_bytes_);
    }

    std::uint64_t line_bytes_, block_bytes_, page_bytes_, pages_ = 0;
    Areas bytes_{};
    std::vector<Areas> starts_;          // by rank
    std::vector<std::uint32_t> frames_;  // by rank and page
};

class Walk {
  public:
    Walk(const Machine& machine, const Call& call, const Replay& how,
         std::span<const schedule::Schedule> schedules)
        : machine_(machine),
          call_(call),
          how_(how),
          schedules_(schedules),
          memory_(machine, call, how, most_scratch(schedules)),
          caches_(machine, topology::one_node(call.ranks, call.domains).domain, memory_.lines(),
                  how.prefetch ? how.page_bytes / machine.line_bytes : 0),
          at_(schedules.size()),
          raised_(schedules.size(), -1) {}

    std::vector<Count> run() {
        if (how_.warm)
            for (std::int32_t r = 0; r < call_.ranks; ++r)
                for (const Area area : {Area::send, Area::recv}) write_whole(r, area);
        caches_.reset_counts();
        std::mt19937 random(how_.seed);
        while (ended_ < call_.ranks) {
            const std::int64_t before = moves_;
            for (std::int32_t i = 0; i < call_.ranks; ++i) {
                const auto who = how_.random_turns ? random() % index(call_.ranks) : index(i);
                for (auto left = how_.random_turns ? 1 + random() % 16 : 1; left > 0; --left)
                    if (!take(base::number(who))) break;
            }
            COCO_CHECK(how_.random_turns || moves_ != before, "some rank goes on");
        }
        return caches_.counts();
    }

  private:
    struct At {
        std::size_t step = 0;
        std::int32_t part = 0;  // of the step: blocks or ranks
    };

    static std::uint64_t most_scratch(std::span<const schedule::Schedule> schedules) {
        std::int32_t most = 0;
        for (const auto& one : schedules) most = std::max(most, one.scratch_blocks);
        return index(most);
    }

    void write_whole(std::int32_t rank, Area area) {
        for (std::uint64_t b = 0; b < memory_.bytes(area); b += machine_.line_bytes)
            caches_.write(rank, memory_.line(rank, area, b));
    }

    bool has_come(std::int32_t rank, schedule::Milestone milestone) const {
        return raised_[index(rank)] >= std::int64_t{milestone};
    }

    // Goes on to the end of the next block. Returns: whether it has copied one.
    bool take(std::int32_t r) {
        At& at = at_[index(r)];
        const auto& steps = schedules_[index(r)].steps;
        while (at.step < steps.size()) {
            const Step& step = steps[at.step];
            COCO_CHECK(step.act <= Act::wait, "on one node nobody sends messages");
            const bool copies = step.act == Act::copy;
            if (copies ? !copy(r, step, at.part) : !pass(r, step, at.part)) return false;
            ++moves_;
            if (!copies || ++at.part == step.count) at = {at.step + 1, 0};
            if (at.step == steps.size()) ++ended_;
            if (copies) return true;
        }
        return false;
    }

    // Returns: whether the step is done.
    bool pass(std::int32_t r, const Step& step, std::int32_t& part) {
        if (step.act == Act::raise) raised_[index(r)] = step.milestone;
        if (step.act == Act::wait)
            for (; part < step.count; ++part)
                if (!has_come(step.awaited(part), step.milestone)) return false;
        return true;
    }

    // Returns: whether the block is copied.
    bool copy(std::int32_t r, const Step& step, std::int32_t part) {
        const Place from = step.source(part), to = step.target(part);
        if (step.after_target && !has_come(to.owner, schedule::kArrived)) return false;
        if (step.after_source && !has_come(from.owner, schedule::kArrived)) return false;
        const std::uint64_t first_read = index(from.index) * call_.block_bytes;
        const std::uint64_t first_written = index(to.index) * call_.block_bytes;
        const std::uint64_t mask = machine_.line_bytes - 1;
        for (std::uint64_t b = 0; b < call_.block_bytes;) {
            caches_.read(r, memory_.line(from.owner, from.area, first_read + b));
            caches_.write(r, memory_.line(to.owner, to.area, first_written + b));
            const std::uint64_t read_at = memory_.offset(from.owner, from.area) + first_read + b;
            const std::uint64_t written_at = memory_.offset(to.owner, to.area) + first_written + b;
            b += machine_.line_bytes - std::max(read_at & mask, written_at & mask);
        }
        return true;
    }

    const Machine& machine_;
    const Call& call_;
    const Replay& how_;
    std::span<const schedule::Schedule> schedules_;
    Memory memory_;
    Caches caches_;
    std::vector<At> at_;
    std::vector<std::int64_t> raised_;
    std::int32_t ended_ = 0;
    std::int64_t moves_ = 0;
};

}  // namespace

std::vector<schedule::Schedule> schedules_of(const algorithms::Algorithm& algorithm, const Call& call,
                                             std::int32_t width) {
    const topology::NodeMap map = topology::one_node(call.ranks, call.domains);
    std::vector<schedule::Schedule> all;
    for (std::int32_t r = 0; r < call.ranks; ++r)
        all.push_back(algorithm.make_schedule(
            {.exchange = call.exchange, .rank = r, .map = &map, .parameters = {.width = width}}));
    return all;
}

std::vector<Count> replay(const Machine& machine, const Call& call, const Replay& how,
                          std::span<const schedule::Schedule> schedules) {
    COCO_CHECK(wrong(machine).empty() && index(call.ranks) <= machine.cores,
               "the machine has a core for each rank");
    return Walk(machine, call, how, schedules).run();
}

}  // namespace coco::cache
