// SPDX-License-Identifier: BSD-3-Clause
#include "base/check.h"
#include "base/index.h"
#include "stats/stats.h"

namespace coco::stats {
namespace {

constexpr const char* kUseMalloc = "allocate it with malloc";

constexpr ReasonText kReasons[] = {
    {"none", "run by libcoco", ""},
    {"policy", "the policy leaves it to MPI", ""},
    {"disabled", "forced to MPI by COCO_DISABLE or COCO_<COLLECTIVE>", ""},
    {"not_set_up", "the communicator was not used often enough yet", ""},
    {"single_rank", "a communicator of one rank", ""},
    {"intercommunicator", "an intercommunicator", ""},
    {"several_nodes", "the algorithm needs all ranks on one node", ""},
    {"no_shared_heap", "no shared heap, or a peer's could not be mapped",
     "see why with COCO_LOG=info; the limit is COCO_HEAP_LIMIT"},
    {"send_private", "send buffer outside the shared heap (stack, static or mmap)", kUseMalloc},
    {"recv_private", "receive buffer outside the shared heap (stack, static or mmap)", kUseMalloc},
    {"datatype", "a derived datatype with gaps", "use contiguous types, or MPI_Pack first"},
    {"in_place", "in place, without shared memory for the copy", "raise COCO_HEAP_LIMIT"},
    {"bad_arguments", "arguments that MPI refuses", ""},
    {"peer", "another rank of the communicator could not take part", ""},
    {"not_initialized", "outside MPI_Init and MPI_Finalize", ""},
    {"other_world", "a communicator with ranks of another MPI_COMM_WORLD", ""},
    {"one_node", "the algorithm is for several nodes", ""},
    {"many_communicators", "too many communicators over several nodes at once",
     "free those that are used no more"},
    {"switched_off", "libcoco is switched off, by COCO_DISABLE=1 or by unequal settings of the ranks", ""},
    {"device_memory", "memory of a device (GPU) is among the ranks' buffers", ""},
};
static_assert(std::size(kReasons) == base::index(Reason::kReasons));

}  // namespace

const ReasonText& text_of(Reason reason) {
    COCO_CHECK(reason < Reason::kReasons, "a reason is one of those that have a text");
    return kReasons[base::index(reason)];
}

}  // namespace coco::stats
