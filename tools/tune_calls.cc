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

namespace {

struct Arguments {
    const mpi::Library* doors;
    mpi::Comm comm;
    mpi::Datatype byte;
    char *send, *recv;
    int count;
    const int *counts, *starts;
    const mpi::Aint* byte_starts;
    const void* types;
};

std::function<void()> among_all(Collective collective, const Arguments& a) {
    switch (collective) {
        case Collective::alltoall:
            return [a] { a.doors->Alltoall(a.send, a.count, a.byte, a.recv, a.count, a.byte, a.comm); };
        case Collective::alltoallv:
            return [a] {
                a.doors->Alltoallv(a.send, a.counts, a.starts, a.byte, a.recv, a.counts, a.starts, a.byte,
                                   a.comm);
            };
        case Collective::alltoallw:
            return [a] {
                a.doors->Alltoallw(a.send, a.counts, a.starts, a.types, a.recv, a.counts, a.starts, a.types,
                                   a.comm);
            };
        case Collective::allgather:
            return [a] { a.doors->Allgather(a.send, a.count, a.byte, a.recv, a.count, a.byte, a.comm); };
        case Collective::allgatherv:
            return [a] {
                a.doors->Allgatherv(a.send, a.count, a.byte, a.recv, a.counts, a.starts, a.byte, a.comm);
            };
        default:
            return [a] { a.doors->Bcast(a.send, a.count, a.byte, kRoot, a.comm); };
    }
}

std::function<void()> among_neighbors(Collective collective, const Arguments& a) {
    switch (collective) {
        case Collective::neighbor_alltoall:
            return
                [a] { a.doors->Neighbor_alltoall(a.send, a.count, a.byte, a.recv, a.count, a.byte, a.comm); };
        case Collective::neighbor_alltoallv:
            return [a] {
                a.doors->Neighbor_alltoallv(a.send, a.counts, a.starts, a.byte, a.recv, a.counts, a.starts,
                                            a.byte, a.comm);
            };
        case Collective::neighbor_alltoallw:
            return [a] {
                a.doors->Neighbor_alltoallw(a.send, a.counts, a.byte_starts, a.types, a.recv, a.counts,
                                            a.byte_starts, a.types, a.comm);
            };
        case Collective::neighbor_allgather:
            return [a] {
                a.doors->Neighbor_allgather(a.send, a.count, a.byte, a.recv, a.count, a.byte, a.comm);
            };
        default:
            return [a] {
                a.doors->Neighbor_allgatherv(a.send, a.count, a.byte, a.recv, a.counts, a.starts, a.byte,
                                             a.comm);
            };
    }
}

}  // namespace

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
    const Arguments arguments{.doors = &job.doors(),
                              .comm = callers.comm,
                              .byte = mpi::lib().byte,
                              .send = send_.at.get(),
                              .recv = recv_.at.get(),
                              .count = static_cast<int>(block_bytes),
                              .counts = counts_.data(),
                              .starts = starts_.data(),
                              .byte_starts = byte_starts_.data(),
                              .types = types_.data()};
    call_ = (is_neighbor(collective) ? among_neighbors : among_all)(collective, arguments);
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
