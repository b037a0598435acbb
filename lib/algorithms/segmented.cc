// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     Tu, Zou, Zhan, Zhao, Fan 2008, section III: data tiling, segments that fit the L1 or L2
//             cache. The paper runs one broadcast after another in a loop; here they overlap over a ring of
//             segments.
// Idea:       The root copies segment after segment into a ring in its scratch. The others copy them out
//             while the next ones are filled; all of them read one segment while it is in cache. The root
//             fills a place of the ring again when all have taken what was there.
// Needs:      one node; any buffers; fewer segments than kDone
// Steps:      n segments, ring of d = min(n, 4): root n copies, n + 1 raises, (n - d)(P - 1) waits; others
//             n copies, n - d + 1 raises, n waits
// Bytes:      per rank 1 buffer
// Scratch:    d segments at the root
// Good for:   large buffers outside the shared heap
// Milestones: the root raises i when segment i is in the ring (so kArrived for the first). The others raise
//             i when they have taken segment i, as long as the root will wait for that.
#include <algorithm>

#include "algorithms/algorithm.h"
#include "base/check.h"

namespace coco::algorithms {
namespace {

using schedule::Area;
using schedule::Milestone;

constexpr std::int32_t kRing = 4;

struct Pipe {
    const Shape& shape;
    std::int32_t ring = std::min(shape.segments, kRing);

    schedule::Place in_ring(std::int32_t segment) const {
        return {shape.root, Area::scratch, segment % ring};
    }
    bool place_is_used_again(std::int32_t segment) const { return segment + ring < shape.segments; }
};

schedule::Schedule fill(const Pipe& pipe) {
    schedule::Builder steps;
    const Shape& shape = pipe.shape;
    steps.scratch(pipe.ring);
    for (std::int32_t i = 0; i < shape.segments; ++i) {
        for (std::int32_t r = 0; i >= pipe.ring && r < shape.map->ranks(); ++r)
            if (r != shape.root) steps.wait(r, static_cast<Milestone>(i - pipe.ring));
        steps.copy({shape.root, Area::send, i}, pipe.in_ring(i)).raise(static_cast<Milestone>(i));
    }
    return steps.raise(schedule::kDone).take();
}

schedule::Schedule take(const Pipe& pipe) {
    schedule::Builder steps;
    const Shape& shape = pipe.shape;
    for (std::int32_t i = 0; i < shape.segments; ++i) {
        steps.wait(shape.root, static_cast<Milestone>(i));
        steps.copy(pipe.in_ring(i), {shape.rank, Area::recv, i});
        if (pipe.place_is_used_again(i)) steps.raise(static_cast<Milestone>(i));
    }
    return steps.raise(schedule::kDone).take();
}

}  // namespace

schedule::Schedule make_segmented(const Shape& shape) {
    COCO_CHECK(shape.root >= 0 && shape.root < shape.map->ranks(), "the root is one of the ranks");
    COCO_CHECK(shape.segments >= 1 && static_cast<schedule::Milestone>(shape.segments) < schedule::kUnread,
               "each segment has a milestone of its own");
    if (shape.map->ranks() == 1) return schedule::Builder().raise(schedule::kDone).take();
    Pipe pipe{shape};
    return shape.rank == shape.root ? fill(pipe) : take(pipe);
}

}  // namespace coco::algorithms
