// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks of one host that cannot map each other's heaps: MPI itself works, having met before, then something
// closes the way. Calls may be handed back or not, on all ranks alike, and results are right. Usage:
// apart_test HOW [odd]; with `odd`, for ranks with an odd number alone.
//
//   users      each rank becomes a user of its own
//   dumpable   ranks may not be looked at (as core dumps could: PR_SET_DUMPABLE)
//   hidden     /proc shows other users' processes to nobody (hidepid), and ranks are different users
//   no_proc    /proc is empty
//   no_heap    the descriptor of the heap is closed, another file is in its place
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "../support/check.h"

namespace {

// All pairs have exchanged something short and something long, so that MPI has what it maps or opens.
void meet() {
    const int rank = test::world_rank(), size = test::world_size();
    std::vector<char> from(100000), to(100000);
    for (int bytes : {1, 100000})
        for (int shift = 0; shift < size; ++shift)
            MPI_Sendrecv(from.data(), bytes, MPI_CHAR, (rank + shift) % size, 1, to.data(), bytes, MPI_CHAR,
                         (rank - shift + size) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

bool become_user() {
    const auto user = static_cast<uid_t>(60000 + test::world_rank());
    return setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0;
}

bool cover_proc(const char* kind, const char* options) {
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount(kind, "/proc", kind, 0, options) == 0;
}

bool replace_heap_descriptors() {
    bool found = false;
    for (int fd = 3; fd < 1024; ++fd) {
        char target[256] = {};
        const std::string link = "/proc/self/fd/" + std::to_string(fd);
        if (readlink(link.c_str(), target, sizeof target - 1) < 0) continue;
        if (std::string(target).find("coco-heap") == std::string::npos) continue;
        const int other = open("/proc/self/exe", O_RDONLY);
        found = dup2(other, fd) == fd;
        close(other);
    }
    return found;
}

bool part(const std::string& how) {
    if (how == "users") return become_user();
    if (how == "dumpable") return prctl(PR_SET_DUMPABLE, 0) == 0;
    if (how == "hidden") return cover_proc("proc", "hidepid=2") && become_user();
    if (how == "no_proc") return cover_proc("tmpfs", nullptr);
    if (how == "no_heap") return replace_heap_descriptors();
    return false;
}

void exchange(MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int call = 0; call < 40; ++call) {
        const int ints = 1 << call % 13;
        std::vector<int> from(static_cast<std::size_t>(ints * size)), to(from.size(), -1), all(to),
            wanted(to), gathered(to);
        for (int i = 0; i < ints * size; ++i) {
            const auto at = static_cast<std::size_t>(i);
            from[at] = rank * 100000 + i / ints * 1000 + call;
            wanted[at] = i / ints * 100000 + rank * 1000 + call;
            gathered[at] = i / ints * 100000 + call;
        }
        MPI_Alltoall(from.data(), ints, MPI_INT, to.data(), ints, MPI_INT, comm);
        CHECK(to == wanted);
        MPI_Allgather(from.data(), ints, MPI_INT, all.data(), ints, MPI_INT, comm);
        CHECK(all == gathered);
        MPI_Bcast(to.data(), ints * size, MPI_INT, call % size, comm);
        CHECK(to[0] == call % size * 1000 + call);
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const std::string how = argc > 1 ? argv[1] : "";
    const bool all = argc < 3;
    meet();
    CHECK((!all && test::world_rank() % 2 == 0) || part(how));
    exchange(MPI_COMM_WORLD);
    MPI_Comm other;
    MPI_Comm_split(MPI_COMM_WORLD, test::world_rank() / 2, 0, &other);
    exchange(other);
    MPI_Comm_free(&other);
    if (how == "no_proc") umount("/proc");  // UCX looks there at its end
    const int verdict = test::finish("apart");
    MPI_Finalize();
    return verdict;
}
