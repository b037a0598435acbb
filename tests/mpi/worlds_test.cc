// SPDX-License-Identifier: BSD-3-Clause
//
// Communicators that are left to MPI because of whom they join: intercommunicators, and those with ranks of
// another MPI_COMM_WORLD. Known results in every collective, as a program sees them; that they are handed
// back for the right reason the report must tell.
//
//   worlds_test          intercommunicators between the halves of the world
//   worlds_test spawn    two more ranks are spawned: the intercommunicator to them, and it merged
//   worlds_test spawn_plain   the same, without libcoco in the spawned world
//   worlds_test child    what is spawned
#include <mpi.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "support/check.h"

namespace {

using namespace test;

int calls = 20;  // fewer between worlds, which crowd the cores
constexpr int kInts = 50;

// The two sides of a communicator: one's own ranks and those that it exchanges blocks with; the same ranks
// where it is no intercommunicator.
struct Sides {
    MPI_Comm comm;
    int mine, theirs;  // numbers of the groups, part of every value
    int rank = 0, ranks = 0, peers = 0;
    bool inter() const { return mine != theirs; }
};

Sides sides_of(MPI_Comm comm, int mine, int theirs) {
    Sides s{comm, mine, theirs};
    MPI_Comm_rank(comm, &s.rank);
    MPI_Comm_size(comm, &s.ranks);
    s.peers = s.ranks;
    if (s.inter()) MPI_Comm_remote_size(comm, &s.peers);
    return s;
}

int value(int group, int source, int target, int turn) {
    return group * 1'000'000 + source * 10'000 + target * 100 + turn;
}

using Ints = std::vector<int>;
Ints ints(int blocks) { return Ints(static_cast<std::size_t>(blocks * kInts), -1); }

// Blocks to every peer, or one for all (target 0).
Ints outgoing(const Sides& s, int blocks, int turn) {
    Ints data = ints(blocks);
    for (int i = 0; i < blocks * kInts; ++i)
        data[static_cast<std::size_t>(i)] = value(s.mine, s.rank, i / kInts, turn);
    return data;
}

void check_incoming(const Sides& s, const Ints& data, bool personal, int turn, const char* what) {
    int wrong = 0;
    for (int i = 0; i < s.peers * kInts; ++i)
        wrong += data[static_cast<std::size_t>(i)] != value(s.theirs, i / kInts, personal ? s.rank : 0, turn);
    CHECK_SAYING(wrong == 0, what);
}

void alltoalls(const Sides& s, int turn) {
    Ints from = outgoing(s, s.peers, turn), to = ints(s.peers);
    Ints counts(static_cast<std::size_t>(s.peers), kInts), places, bytes;
    std::vector<MPI_Datatype> types(counts.size(), MPI_INT);
    for (int r = 0; r < s.peers; ++r) {
        places.push_back(r * kInts);
        bytes.push_back(r * kInts * static_cast<int>(sizeof(int)));
    }
    MPI_Alltoall(from.data(), kInts, MPI_INT, to.data(), kInts, MPI_INT, s.comm);
    check_incoming(s, to, true, turn, "alltoall");
    to = ints(s.peers);
    MPI_Alltoallv(from.data(), counts.data(), places.data(), MPI_INT, to.data(), counts.data(), places.data(),
                  MPI_INT, s.comm);
    check_incoming(s, to, true, turn, "alltoallv");
    to = ints(s.peers);
    MPI_Alltoallw(from.data(), counts.data(), bytes.data(), types.data(), to.data(), counts.data(),
                  bytes.data(), types.data(), s.comm);
    check_incoming(s, to, true, turn, "alltoallw");
}

void allgathers(const Sides& s, int turn) {
    Ints from = outgoing(s, 1, turn), to = ints(s.peers);
    Ints counts(static_cast<std::size_t>(s.peers), kInts), places;
    for (int r = 0; r < s.peers; ++r) places.push_back(r * kInts);
    MPI_Allgather(from.data(), kInts, MPI_INT, to.data(), kInts, MPI_INT, s.comm);
    check_incoming(s, to, false, turn, "allgather");
    to = ints(s.peers);
    MPI_Allgatherv(from.data(), kInts, MPI_INT, to.data(), counts.data(), places.data(), MPI_INT, s.comm);
    check_incoming(s, to, false, turn, "allgatherv");
}

// From a rank of `group` to all of the other group; where there is but one group, to all.
void bcast(const Sides& s, int group, int turn) {
    int root = turn % (s.mine == group ? s.ranks : s.peers);
    bool is_root = s.mine == group && s.rank == root;
    bool idle = s.inter() && s.mine == group && !is_root;
    Ints data = ints(1);
    if (is_root) data.assign(kInts, value(group, root, 0, turn));
    int given = !s.inter() || s.mine != group ? root : is_root ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Bcast(data.data(), kInts, MPI_INT, given, s.comm);
    CHECK_SAYING(data == Ints(kInts, idle ? -1 : value(group, root, 0, turn)), "bcast");
}

void use(const Sides& s) {
    for (int turn = 0; turn < calls; ++turn) {
        alltoalls(s, turn);
        allgathers(s, turn);
        bcast(s, s.mine < s.theirs ? s.mine : s.theirs, turn);
        if (s.inter()) bcast(s, s.mine < s.theirs ? s.theirs : s.mine, turn);
    }
}

// Two halves; then rank 0 and all others.
void halves() {
    for (int first : {world_size() / 2, 1}) {
        int side = world_rank() < first ? 0 : 1;
        MPI_Comm half, inter, copy;
        MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side == 0 ? first : 0, 7, &inter);
        use(sides_of(inter, side, 1 - side));
        MPI_Comm_dup(inter, &copy);
        use(sides_of(copy, side, 1 - side));
        for (MPI_Comm* comm : {&copy, &inter, &half}) MPI_Comm_free(comm);
    }
}

void use_both_worlds(MPI_Comm inter, int side) {
    use(sides_of(MPI_COMM_WORLD, side, side));
    use(sides_of(inter, side, 1 - side));
    MPI_Comm merged, backwards;
    MPI_Intercomm_merge(inter, side, &merged);
    use(sides_of(merged, 2, 2));
    MPI_Comm_split(merged, 0, -world_rank(), &backwards);
    use(sides_of(backwards, 2, 2));
    MPI_Comm_free(&backwards);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&inter);
}

// The launcher does not hand our environment on. The spawned world's report gets a file of its own: a
// launcher may forward a part of one world's table in the midst of a line of the other's. Returns: false
// where the MPI library cannot spawn.
bool spawn(char* program, bool preload) {
    std::vector<std::string> words;
    if (const char* libraries = std::getenv("LD_PRELOAD"); libraries != nullptr && preload)
        words.push_back(std::string("LD_PRELOAD=") + libraries);
    if (const char* report = std::getenv("COCO_STATS"); report != nullptr && preload)
        words.push_back(std::string("COCO_STATS=") + report + "-spawned.json");
    words.insert(words.end(), {program, "child"});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    MPI_Comm inter;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Comm_spawn("/usr/bin/env", arguments.data(), 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                              MPI_ERRCODES_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (code != MPI_SUCCESS) return false;
    use_both_worlds(inter, 0);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const std::string mode = argc > 1 ? argv[1] : "";
    if (!mode.empty()) calls = 5;
    if (mode.empty() && world_size() > 1) halves();
    bool skipped = mode.starts_with("spawn") && !spawn(argv[0], mode == "spawn");
    if (mode == "child") {
        MPI_Comm parent;
        MPI_Comm_get_parent(&parent);
        CHECK(parent != MPI_COMM_NULL);
        if (parent != MPI_COMM_NULL) use_both_worlds(parent, 1);
    }
    const int verdict = finish(("worlds " + mode).c_str());
    MPI_Finalize();
    return skipped ? 77 : verdict;
}
