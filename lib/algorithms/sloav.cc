// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     Xu, Venkata, Graham, Wang, Liu, Yu 2013, section III (SLOAV). The paper sends the total size
//             first, and the message then. Here lengths and data go at once while they are few, else the
//             data follow. In the paper elements that do not fit their segment have a buffer of their own;
//             here each message is kept where it came until the call is over. The radix is free.
// Idea:       Bruck's rounds for blocks of unequal sizes. Scratch holds elements, which say where a block
//             lies and how long it is, so that no data move until they are packed to be sent. A message
//             brings the lengths of its elements along. Long blocks go straight to their receivers, as the
//             lengths tell: above 64 KiB, or 4 MiB / P where that is less, but not below 16 KiB.
// Needs:      nothing: any ranks, any nodes
// Steps:      per rank bruck's messages, each two where it brings more than 4 KiB of data; and one for each
//             long block
// Bytes:      per rank each short block once for each digit of its distance that is not 0, packed
//             each time; 24 bytes for each message, and 4 for each block in it, rounded up to 8; long
//             blocks once
// Scratch:    about P (r - 1) / r (ceil(log_r P) + r - 1) elements of 32 bytes
// Good for:   many ranks and short blocks, above all where most are empty
#include "algorithms/exchange.h"

namespace coco::algorithms {

schedule::Schedule make_sloav(const Shape& shape) { return make_flat(shape, Inner::bruck); }

}  // namespace coco::algorithms
