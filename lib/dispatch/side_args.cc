// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/side_args.h"

#include "exec/limits.h"

namespace coco::dispatch {

using algorithms::Collective;

namespace {

TypeFacts type_of_side(const BufferArgs& args, const TypeFacts* known) {
    if (known != nullptr) return *known;
    // A rank without neighbours may give no types.
    return args.types == nullptr && args.type != mpi::Datatype{} ? facts_of(args.type) : TypeFacts{};
}

}  // namespace

std::int32_t send_blocks_of(Collective collective, const comm::Comm& comm) {
    if (is_neighbor(collective)) return comm.neighbors->graph_of(collective).send_blocks();
    return comm.ranks;
}
std::int32_t recv_blocks_of(Collective collective, const comm::Comm& comm) {
    if (is_neighbor(collective)) return comm.neighbors->graph_of(collective).recv_blocks;
    return comm.ranks;
}

SideArgs send_side(const Args& args, const comm::Comm& comm, const TypeFacts* known) {
    bool personal = base::is_personal(args.collective);
    std::int32_t blocks = send_blocks_of(args.collective, comm);
    return {.args = args.send,
            .blocks = personal ? blocks : std::min(blocks, 1),
            .sized = is_sized(args.collective) && personal,
            .one_type = type_of_side(args.send, known),
            .nobody = is_neighbor(args.collective) ? &comm.neighbors->to_nobody : nullptr};
}
SideArgs recv_side(const Args& args, const comm::Comm& comm, const TypeFacts* known) {
    bool bcast = args.collective == Collective::bcast;
    // One that names absolute addresses has to say where they are.
    if (bcast && known == nullptr && args.recv.buffer != nullptr) {
        const TypeFacts type = facts_to_pack(args.recv.type, args.recv.count, exec::kTapedBytesMax);
        return recv_side(args, comm, &type);
    }
    return {.args = args.recv,
            .blocks = bcast ? 1 : recv_blocks_of(args.collective, comm),
            .sized = is_sized(args.collective),
            .one_type = type_of_side(args.recv, known),
            .nobody = is_neighbor(args.collective) ? &comm.neighbors->from_nobody : nullptr};
}

}  // namespace coco::dispatch
