// SPDX-License-Identifier: BSD-3-Clause
#include "exec/signature.h"

#include "mpi/library.h"

namespace coco::exec {

namespace {

[[noreturn]] void stop_wrong(const comm::Comm& comm, base::Text& what) {
    what << ": the program is wrong (COCO_DISABLE=1 leaves the check to MPI)";
    mpi::stop_job(comm.handle, mpi::lib().constants.err_arg, what);
}

}  // namespace

void stop_unequal(const comm::Comm& comm, std::int32_t peer) {
    stop_wrong(comm,
               base::Text() << "ranks " << comm.rank << " and " << peer << " of a communicator of "
                            << comm.ranks
                            << " ranks are in different collectives, or call one with different block sizes");
}

void stop_two_sizes(const comm::Comm& comm, algorithms::Collective collective) {
    stop_wrong(comm, base::Text() << "rank " << comm.rank << " of a communicator of " << comm.ranks
                                  << " ranks receives blocks of another size than it sends in "
                                  << base::name_of(collective).data()
                                  << ", where its neighbours have to name one size");
}

stats::Reason agree(const comm::Comm& comm, channel::Channel& channel, std::uint32_t signature,
                    stats::Reason own) {
    bool is_refused = false;
    for (const std::int32_t mate : comm.mates) {
        channel.wait_arrived(mate);
        check_signature(comm, channel, mate, signature);
        is_refused |= channel.slot_of(mate).publish == channel::Publish::refuse;
    }
    return is_refused && own == stats::Reason::none ? stats::Reason::peer : own;
}

}  // namespace coco::exec
