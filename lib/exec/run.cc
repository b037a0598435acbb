// SPDX-License-Identifier: BSD-3-Clause
#include "exec/exchange.h"
#include "mpi/progress.h"

namespace coco::exec {

namespace {

// What is too large for a stage ring cannot be eager.
const algorithms::Algorithm& fitting(const algorithms::Algorithm& algorithm, const comm::Comm& comm,
                                     const CommonFacts& common) {
    if (common.sized || common.collective == algorithms::Collective::bcast || !algorithm.is_eager())
        return algorithm;
    bool personal = common.collective == algorithms::Collective::alltoall;
    std::uint64_t blocks = personal ? static_cast<std::uint64_t>(comm.ranks - 1) : 1;
    return blocks * common.block_bytes <= channel::kStageBytes ? algorithm : plain_pull(common.collective);
}

// Whether all blocks of a plain form of neighbours, on all ranks, are of one size. All ranks say the same:
// where a rank's two sizes are not those of all others, nobody can tell.
bool is_of_one_size(const comm::Comm& comm, const Call& call) {
    const comm::Neighbors& near = *comm.neighbors;
    if (!near.sizes_agree) return false;
    return near.sends_nothing || near.receives_nothing ||
           call.local.send.block_bytes == call.local.recv.block_bytes;
}

}  // namespace

Outcome run(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
            const algorithms::Parameters& parameters) noexcept {
    comm.channel.begin_epoch();
    mpi::set_current(comm.handle);
    if (base::is_neighbor(call.common.collective)) {
        if (!algorithm.needs_bundles()) return run_neighbors(comm, call, algorithm, parameters);
        bool fits = call.common.sized || is_of_one_size(comm, call);
        return fits ? run_over_nodes(comm, call, algorithm, parameters)
                    : run_neighbors(comm, call, plain_pull(call.common.collective), {});
    }
    if (call.common.collective == algorithms::Collective::bcast)
        return (comm.wire != nullptr ? run_bcast_over_nodes : run_bcast)(comm, call, algorithm, parameters);
    if (comm.wire != nullptr) return run_over_nodes(comm, call, algorithm, parameters);
    const algorithms::Algorithm& fits = fitting(algorithm, comm, call.common);
    Outcome outcome = call.common.sized ? run_sized(comm, call, fits) : run_uniform(comm, call, fits);
    outcome.ran = &fits;
    return outcome;
}

void refuse_together(comm::Comm& comm, algorithms::Collective collective) {
    constexpr std::uint32_t kNoRoot = 0xF0;  // no exchange has this signature
    comm.channel.begin_epoch();
    mpi::set_current(comm.handle);
    channel::Slot& slot = *comm.channel.open_slot();
    slot.signature = signature_of({.collective = collective}) ^ kNoRoot;
    slot.publish = channel::Publish::refuse;
    comm.channel.publish(slot);
    agree(comm, slot.signature, stats::Reason::bad_arguments);
    comm.channel.raise(schedule::kDone);
}

}  // namespace coco::exec
