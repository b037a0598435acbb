// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     Tu, Zou, Zhan, Zhao, Fan 2008, section III: the flat one-to-many broadcast within a node. The
//             paper copies through shared memory; on a shared heap one copy does.
// Idea:       The root says that its buffer is there. All other ranks copy it at the same time, so that
//             readers on a shared cache help each other. The root waits until all have it.
// Needs:      one node; the root's buffer on the shared heap
// Steps:      root 2 raises, P - 1 waits; others 1 wait, 1 copy, 1 raise
// Bytes:      per rank 1 buffer, the root none
// Scratch:    none
// Good for:   large buffers on the shared heap
#include "algorithms/algorithm.h"
#include "base/check.h"

namespace coco::algorithms {

schedule::Schedule make_direct(const Shape& shape) {
    COCO_CHECK(shape.exchange == Exchange::bcast, "a root has a buffer for all in a bcast");
    COCO_CHECK(shape.root >= 0 && shape.root < shape.map->ranks(), "the root is one of the ranks");
    using schedule::Area;
    schedule::Builder steps;
    if (shape.rank != shape.root) {
        steps.wait(shape.root, schedule::kArrived);
        steps.copy({shape.root, Area::send, 0}, {shape.rank, Area::recv, 0});
        return steps.raise(schedule::kDone).take();
    }
    steps.raise(schedule::kArrived).raise(schedule::kDone);
    for (std::int32_t r = 0; r < shape.map->ranks(); ++r)
        if (r != shape.root) steps.wait(r, schedule::kDone);
    return steps.take();
}

}  // namespace coco::algorithms
