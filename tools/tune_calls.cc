// SPDX-License-Identifier: BSD-3-Clause
#include "tools/tune_calls.h"

#include <climits>
#include <cstring>

#include "os/cpu.h"
#include "os/probe.h"

namespace coco::tools {
namespace {

using algorithms::Collective;

constexpr int kRoot = 0;

// Blocks that a rank sends; in a bcast the one buffer counts as sent.
int sent_blocks(Collective collective, int blocks) { return base::is_personal(collective) ? blocks : 1; }
int received_blocks(Collective collective, int blocks) { return is_rooted(collective) ? 0 : blocks; }

void touch(char* at, std::size_t bytes) {
    volatile char* const line = at;
    for (std::size_t i = 0; i < bytes; i += os::kLeastLineBytes) line[i] = static_cast<char>(line[i] + 1);
}

void flush(char* at, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += os::kLeastLineBytes) os::flush_line(at + i);
    os::end_flushing();
}

// Where lines cannot be flushed: reads and writes so much other memory that none of the old is left in the
// caches.
void walk_over_caches() {
    static std::vector<char> other(2 * os::caches().last_level_bytes);
    touch(other.data(), other.size());
}

}  // namespace

std::uint64_t Calls::bytes_of(Collective collective, std::uint64_t block_bytes, int blocks) {
    return block_bytes *
           static_cast<std::uint64_t>(sent_blocks(collective, blocks) + received_blocks(collective, blocks));
}

bool Calls::fit_ints(std::uint64_t block_bytes, int blocks) {
    return block_bytes <= INT_MAX / static_cast<std::uint64_t>(blocks);
}

// A buffer is touched, as programs write to theirs before they send.
Calls::Buffer::Buffer(std::size_t size)
    : bytes(size), at(static_cast<char*>(std::malloc(std::max<std::size_t>(size, 1)))) {
    if (at != nullptr) std::memset(at.get(), 1, bytes);
}

Calls::Calls(const Job& job, Collective collective, std::uint64_t block_bytes, const Callers& callers)
    : job_(job),
      collective_(collective),
      comm_(callers.comm),
      count_(static_cast<int>(block_bytes)),
      send_(block_bytes * static_cast<std::uint64_t>(sent_blocks(collective, callers.blocks))),
      recv_(block_bytes * static_cast<std::uint64_t>(received_blocks(collective, callers.blocks))),
      types_(static_cast<std::size_t>(callers.blocks), mpi::lib().byte),
      types_at_(types_.data()) {
    for (int i = 0; i < callers.blocks; ++i) {
        counts_.push_back(count_);
        starts_.push_back(i * count_);
        byte_starts_.push_back(starts_.back());
    }
}

void Calls::choose(const policy::Choice& choice) const {
    job_.choose(comm_, collective_, policy::text_of(choice));
}

// Of the five forms that neighbours have, too, only one has other parameters there.
void Calls::make() const {
    const mpi::Library& mpi = job_.doors();
    const mpi::Datatype byte = mpi::lib().byte;
    const bool near = is_neighbor(collective_);
    char *const send = send_.at.get(), *const recv = recv_.at.get();
    const int *const counts = counts_.data(), *const starts = starts_.data();
    const mpi::Aint* const at = byte_starts_.data();
    const void* const types = types_at_;
    switch (collective_) {
        case Collective::alltoall:
        case Collective::neighbor_alltoall:
            (near ? mpi.Neighbor_alltoall : mpi.Alltoall)(send, count_, byte, recv, count_, byte, comm_);
            return;
        case Collective::alltoallv:
        case Collective::neighbor_alltoallv:
            (near ? mpi.Neighbor_alltoallv : mpi.Alltoallv)(send, counts, starts, byte, recv, counts, starts,
                                                            byte, comm_);
            return;
        case Collective::alltoallw:
            mpi.Alltoallw(send, counts, starts, types, recv, counts, starts, types, comm_);
            return;
        case Collective::neighbor_alltoallw:
            mpi.Neighbor_alltoallw(send, counts, at, types, recv, counts, at, types, comm_);
            return;
        case Collective::allgather:
        case Collective::neighbor_allgather:
            (near ? mpi.Neighbor_allgather : mpi.Allgather)(send, count_, byte, recv, count_, byte, comm_);
            return;
        case Collective::allgatherv:
        case Collective::neighbor_allgatherv:
            (near ? mpi.Neighbor_allgatherv : mpi.Allgatherv)(send, count_, byte, recv, counts, starts, byte,
                                                              comm_);
            return;
        case Collective::bcast:
            mpi.Bcast(send, count_, byte, kRoot, comm_);
    }
}

void Calls::write() const {
    if (!is_rooted(collective_) || job_.rank() == kRoot) touch(send_.at.get(), send_.bytes);
}

void Calls::cool() const {
    if (os::kFlushesLines) {
        flush(send_.at.get(), send_.bytes);
        flush(recv_.at.get(), recv_.bytes);
    } else {
        walk_over_caches();
    }
    touch(send_.at.get(), send_.bytes);
    touch(recv_.at.get(), recv_.bytes);
}

}  // namespace coco::tools
