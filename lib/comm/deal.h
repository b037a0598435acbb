// SPDX-License-Identifier: BSD-3-Clause
//
// Records from every rank of a communicator to any other, at set-up. Thread safety: that of the communicator.
#pragma once
#include <climits>
#include <vector>

#include "base/check.h"
#include "base/index.h"
#include "comm/comm.h"
#include "mpi/library.h"

namespace coco::comm {

// Gives each record to the rank that `to` says. Returns: the records given to this rank, by sender, each
// sender's in its order. Record: travels as bytes. Requires: all ranks of the communicator call it in the
// same call.
template <class Record>
std::vector<Record> deal(const Comm& comm, const std::vector<Record>& records,
                         const std::vector<std::int32_t>& to) {
    auto ranks = base::index(comm.ranks);
    COCO_CHECK(records.size() == to.size(), "each record goes to a rank");
    std::vector<int> counts(ranks), at(ranks), came_counts(ranks), came_at(ranks);
    COCO_CHECK(records.size() <= INT_MAX / sizeof(Record), "the bytes of all records fit into an int");
    for (std::int32_t r : to) {
        COCO_CHECK(r >= 0 && r < comm.ranks, "a record goes to a rank of the communicator");
        counts[r] += static_cast<int>(sizeof(Record));
    }
    mpi::lib().Alltoall(counts.data(), sizeof(int), mpi::lib().byte, came_counts.data(), sizeof(int),
                        mpi::lib().byte, comm.handle);
    for (std::size_t r = 1; r < ranks; ++r) {
        at[r] = at[r - 1] + counts[r - 1];
        COCO_CHECK(came_counts[r - 1] <= INT_MAX - came_at[r - 1], "the bytes of what comes fit into an int");
        came_at[r] = came_at[r - 1] + came_counts[r - 1];
    }
    std::vector<Record> packed(records.size());
    std::vector<int> next = at;
    for (std::size_t i = 0; i < records.size(); ++i) {
        packed[base::index(next[to[i]]) / sizeof(Record)] = records[i];
        next[to[i]] += static_cast<int>(sizeof(Record));
    }
    std::vector<Record> came(base::index(came_at.back() + came_counts.back()) / sizeof(Record));
    mpi::lib().Alltoallv(packed.data(), counts.data(), at.data(), mpi::lib().byte, came.data(),
                         came_counts.data(), came_at.data(), mpi::lib().byte, comm.handle);
    return came;
}

}  // namespace coco::comm
