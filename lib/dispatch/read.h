// SPDX-License-Identifier: BSD-3-Clause
//
// MPI's arguments -> exec's Call: bytes and blocks. In two parts, as the facts are two: what is common to all
// ranks decides the path (read_common.cc), what is local fills the buffers in once the path is chosen
// (read_local.cc).
#pragma once
#include <span>
#include <vector>

#include "comm/comm.h"
#include "dispatch/args.h"
#include "dispatch/datatype.h"
#include "dispatch/type_packer.h"
#include "exec/call.h"

namespace coco::dispatch {

// The common facts and whether the arguments are such that MPI will take them. block_bytes: the size that
// policy asks for: the block of plain forms, the whole buffer of bcast, the largest block of allgatherv;
// sized alltoalls have none.
struct CommonArguments {
    exec::CommonFacts facts;
    bool valid = true;
    // Not valid, but perhaps on this rank alone, where the MPI library might go on: an alltoall or allgather
    // that receives more or less than it sends.
    bool doubtful = false;
    // The rank sends from where it receives, perhaps alone: it takes part, and the MPI library's error
    // follows.
    bool refused_alias = false;
    // The rank sends a copy, as it must not send what it has received in the same call.
    bool sends_copy = false;
    // All neighbours must name one size (comm::Neighbors::one_size), and this rank names two.
    bool names_two_sizes = false;
    bool has_block = true;
    std::uint64_t block_bytes = 0;
    // The types of both sides (not of w forms), and whether all their blocks are runs of bytes.
    TypeFacts send_type, recv_type;
    bool send_dense = false, recv_dense = false;
};
CommonArguments read_common(const Args& args, const comm::Comm& comm);

// The memory into which the buffers of a call point. Each thread has one, so that calls allocate nothing once
// it has grown.
struct Workspace {
    std::vector<blocks::BlockAt> send_blocks, recv_blocks;
    TypePacker send_packer, recv_packer;
    // The layouts that a call uses live as long as it, whoever frees their types.
    std::vector<blocks::BlockLayout> send_block_layouts, recv_block_layouts;
    std::vector<std::shared_ptr<const TypeLayout>> send_layouts, recv_layouts;
};
Workspace& workspace();

// The blocks of a side of a v form whose type has no gaps, from the run of its first element, and their sum.
// Returns: below 0 if a count is.
std::int64_t read_blocks(const BufferArgs& side, std::uint64_t size_bytes, std::span<blocks::BlockAt> blocks,
                         std::uint64_t& total_bytes);

// Neighbours: blocks to or from nobody are as if they had no bytes.
void leave_out(std::span<const std::int32_t> nobody, std::span<blocks::BlockAt> blocks,
               std::uint64_t& total_bytes);

// Whether a buffer is in memory of a device, by its first byte. (No program has a buffer that is there in
// part.)
bool is_on_device(const blocks::Buffer& buffer);

// Returns: what packs a bcast's buffer, for a call whose other facts are known.
const TypePacker* read_packed(const Args& args, Workspace& space);

// Fills in the local facts. Requires: common is valid.
void read_local(const Args& args, const comm::Comm& comm, const CommonArguments& common, Workspace& space,
                exec::LocalFacts& local);

}  // namespace coco::dispatch
