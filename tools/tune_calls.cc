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
    : send_(block_bytes * static_cast<std::uint64_t>(sent_blocks(collective, callers.blocks))),
      recv_(block_bytes * static_cast<std::uint64_t>(received_blocks(collective, callers.blocks))),
      sends_(!is_rooted(collective) || job.rank() == kRoot),
      types_(static_cast<std::size_t>(callers.blocks), mpi::lib().byte) {
    for (int i = 0; i < callers.blocks; ++i) {
        counts_.push_back(static_cast<int>(block_bytes));
        starts_.push_back(i * static_cast<int>(block_bytes));
        byte_starts_.push_back(starts_.back());
    }
    const mpi::Library* doors = &job.doors();
    const mpi::Comm comm = callers.comm;
    const mpi::Datatype byte = mpi::lib().byte;
    char *const send = send_.at.get(), *const recv = recv_.at.get();
    const int count = static_cast<int>(block_bytes);
    const int *const counts = counts_.data(), *const starts = starts_.data();
    const mpi::Aint* const byte_starts = byte_starts_.data();
    const void* const types = types_.data();
    switch (collective) {
        case Collective::alltoall:
            call_ = [=] { doors->Alltoall(send, count, byte, recv, count, byte, comm); };
            break;
        case Collective::alltoallv:
            call_ = [=] { doors->Alltoallv(send, counts, starts, byte, recv, counts, starts, byte, comm); };
            break;
        case Collective::alltoallw:
            call_ = [=] { doors->Alltoallw(send, counts, starts, types, recv, counts, starts, types, comm); };
            break;
        case Collective::allgather:
            call_ = [=] { doors->Allgather(send, count, byte, recv, count, byte, comm); };
            break;
        case Collective::allgatherv:
            call_ = [=] { doors->Allgatherv(send, count, byte, recv, counts, starts, byte, comm); };
            break;
        case Collective::bcast:
            call_ = [=] { doors->Bcast(send, count, byte, kRoot, comm); };
            break;
        case Collective::neighbor_alltoall:
            call_ = [=] { doors->Neighbor_alltoall(send, count, byte, recv, count, byte, comm); };
            break;
        case Collective::neighbor_alltoallv:
            call_ = [=] {
                doors->Neighbor_alltoallv(send, counts, starts, byte, recv, counts, starts, byte, comm);
            };
            break;
        case Collective::neighbor_alltoallw:
            call_ = [=] {
                doors->Neighbor_alltoallw(send, counts, byte_starts, types, recv, counts, byte_starts, types,
                                          comm);
            };
            break;
        case Collective::neighbor_allgather:
            call_ = [=] { doors->Neighbor_allgather(send, count, byte, recv, count, byte, comm); };
            break;
        case Collective::neighbor_allgatherv:
            call_ = [=] { doors->Neighbor_allgatherv(send, count, byte, recv, counts, starts, byte, comm); };
            break;
    }
}

void Calls::write() const {
    if (sends_) touch(send_.at.get(), send_.bytes);
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
