// SPDX-License-Identifier: BSD-3-Clause
//
// Communicators that MPI_Comm_create_group makes, of all ranks of their parent in another order or of some of
// them, and what is made of the parent behind that. Open MPI copies the parent's attributes to them, on the
// ranks of the group alone.
#include <mpi.h>

#include <numeric>
#include <vector>

#include "support/check.h"

namespace {

// Enough calls that libcoco serves the communicator, and some more.
void use(MPI_Comm comm) {
    int rank = 0, size = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    std::vector<int> sent(static_cast<std::size_t>(size)), came(sent.size());
    for (int call = 0; call < 60; ++call) {
        for (int r = 0; r < size; ++r) sent[static_cast<std::size_t>(r)] = (call * 64 + rank) * 64 + r;
        MPI_Alltoall(sent.data(), 1, MPI_INT, came.data(), 1, MPI_INT, comm);
        for (int r = 0; r < size; ++r)
            CHECK(came[static_cast<std::size_t>(r)] == (call * 64 + r) * 64 + rank);
    }
}

// Makes a communicator of these ranks of the parent, uses and frees it.
void use_group(MPI_Comm parent, const std::vector<int>& ranks, bool uses = true) {
    MPI_Group all, some;
    MPI_Comm_group(parent, &all);
    MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
    int rank = MPI_UNDEFINED;
    MPI_Group_rank(some, &rank);
    if (rank != MPI_UNDEFINED) {
        MPI_Comm made;
        MPI_Comm_create_group(parent, some, 7, &made);
        if (uses) use(made);
        MPI_Comm_free(&made);
    }
    MPI_Group_free(&some);
    MPI_Group_free(&all);
}

void check_below(MPI_Comm parent) {
    int size = 0;
    MPI_Comm_size(parent, &size);
    std::vector<int> reversed(static_cast<std::size_t>(size));
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    use_group(parent, reversed);
    std::vector<int> but_first(reversed.rbegin() + 1, reversed.rend());
    use_group(parent, but_first);
    use_group(parent, but_first, false);
    MPI_Comm copy;
    MPI_Comm_dup(parent, &copy);
    use(copy);
    MPI_Comm_free(&copy);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    check_below(MPI_COMM_WORLD);
    MPI_Comm parent;
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    check_below(parent);
    use(parent);
    check_below(parent);
    MPI_Comm_free(&parent);
    const int status = test::finish("groups");
    MPI_Finalize();
    return status;
}
