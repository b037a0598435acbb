// SPDX-License-Identifier: BSD-3-Clause
//
// Communicators of every kind that are made from one another, used and freed in a random order, which is the
// same on all ranks: duplicates of duplicates, splits, grids, graphs, many at once, in one thread and in
// several. What a collective on one of them brings is checked against what its members must have sent. Ranks
// that took one communicator for another would see wrong data or hang.
//
//     meetings_test SEED STEPS [THREADS]
#include <mpi.h>

#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "support/check.h"

namespace {

using namespace test;

constexpr std::size_t kLiveMost = 40;

// The words of a block: enough that the first exchange opens a communicator.
constexpr int kWords = 4096;

// A communicator with the world ranks of its members.
struct Live {
    MPI_Comm comm;
    std::vector<int> members;
    int number;  // unlike that of all others of the thread
};

std::vector<int> members_of(MPI_Comm comm) {
    MPI_Group world, group;
    int size;
    MPI_Comm_size(comm, &size);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(comm, &group);
    std::vector<int> own(static_cast<std::size_t>(size)), there(own.size());
    for (int i = 0; i < size; ++i) own[static_cast<std::size_t>(i)] = i;
    MPI_Group_translate_ranks(group, size, own.data(), world, there.data());
    MPI_Group_free(&world);
    MPI_Group_free(&group);
    return there;
}

// The word that a rank of the world sends to another one in a call.
int word_of(const Live& live, int from, int to, int call) {
    return live.number * 1'000'003 + from * 1009 + to * 31 + call;
}

class Player {
  public:
    Player(MPI_Comm base, unsigned seed) : random_(seed) { add(base); }

    void play(int steps) {
        for (int step = 0; step < steps; ++step) {
            Live& live = live_[draw(live_.size())];
            switch (draw(10)) {
                case 0:
                case 1:
                    make(live);
                    break;
                case 2:
                    drop(1 + draw(live_.size()));
                    break;
                default:
                    call(live, step);
            }
        }
        while (live_.size() > 1) drop(1);
    }

  private:
    std::size_t draw(std::size_t below) {
        return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_);
    }

    void add(MPI_Comm comm) {
        if (comm != MPI_COMM_NULL) live_.push_back({comm, members_of(comm), ++made_});
    }

    // The same draws on all ranks, whether they are members or not: all have all communicators of whole
    // splits.
    void make(const Live& from) {
        if (live_.size() >= kLiveMost) return;
        const MPI_Comm parent = from.comm;
        MPI_Comm made = MPI_COMM_NULL;
        int rank, size;
        MPI_Comm_rank(parent, &rank);
        MPI_Comm_size(parent, &size);
        int periodic = 1;
        const int peers[] = {(rank + size - 1) % size, (rank + 1) % size};
        switch (draw(6)) {
            case 0:
                MPI_Comm_split(parent, 0, -rank, &made);
                break;
            case 1:
                MPI_Cart_create(parent, 1, &size, &periodic, 0, &made);
                break;
            case 2:
                MPI_Dist_graph_create_adjacent(parent, 2, peers, MPI_UNWEIGHTED, 2, peers, MPI_UNWEIGHTED,
                                               MPI_INFO_NULL, 0, &made);
                break;
            case 3:
                MPI_Comm_split_type(parent, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
                break;
            default:
                MPI_Comm_dup(parent, &made);
        }
        add(made);
    }

    void drop(std::size_t at) {
        if (at >= live_.size()) return;
        MPI_Comm_free(&live_[at].comm);
        live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(at));
    }

    void call(const Live& live, int step) {
        const int size = static_cast<int>(live.members.size()), me = world_rank();
        const std::size_t kind = draw(4), root = draw(live.members.size());
        const int times = static_cast<int>(1 + draw(9));
        for (int i = 0; i < times; ++i) {
            const int call = step * 16 + i;
            if (kind < 2)
                bcast(live, static_cast<int>(root), call);
            else
                exchange(live, kind == 2, size, me, call);
        }
    }

    void bcast(const Live& live, int root, int call) {
        const int from = live.members[static_cast<std::size_t>(root)];
        int word = from == world_rank() ? word_of(live, from, 0, call) : -1;
        MPI_Bcast(&word, 1, MPI_INT, root, live.comm);
        CHECK(word == word_of(live, from, 0, call));
    }

    void exchange(const Live& live, bool personal, int size, int me, int call) {
        std::vector<int> send, recv(live.members.size() * kWords, -1);
        for (int member : live.members)
            send.insert(send.end(), kWords, word_of(live, me, personal ? member : 0, call));
        if (personal)
            MPI_Alltoall(send.data(), kWords, MPI_INT, recv.data(), kWords, MPI_INT, live.comm);
        else
            MPI_Allgather(send.data(), kWords, MPI_INT, recv.data(), kWords, MPI_INT, live.comm);
        for (int i = 0; i < size; ++i) {
            const int word =
                word_of(live, live.members[static_cast<std::size_t>(i)], personal ? me : 0, call);
            CHECK(recv[static_cast<std::size_t>(i * kWords)] == word);
            CHECK(recv[static_cast<std::size_t>(i * kWords + kWords - 1)] == word);
        }
    }

    std::mt19937 random_;
    std::vector<Live> live_;
    int made_ = 0;
};

// More than the places near which an entry of a directory belongs, all used before the first is freed.
void many_at_once() {
    constexpr std::size_t kMany = 300;
    std::vector<MPI_Comm> comms(kMany);
    for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int round = 0; round < 2; ++round)
        for (std::size_t i = 0; i < kMany; ++i) {
            std::vector<int> send(static_cast<std::size_t>(world_size() * kWords), static_cast<int>(i)),
                recv(send.size(), -1);
            MPI_Alltoall(send.data(), kWords, MPI_INT, recv.data(), kWords, MPI_INT, comms[i]);
            for (int word : recv) CHECK(word == static_cast<int>(i));
        }
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

// Open MPI 4.1 opens its framework of topologies at the first topology of a process, and crashes when several
// threads make that first topology at once; it does so without libcoco, too.
void open_topologies() {
    int size, periodic = 1;
    MPI_Comm grid;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &grid);
    MPI_Comm_free(&grid);
}

}  // namespace

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    const auto seed = static_cast<unsigned>(std::atoi(argc > 1 ? argv[1] : "1"));
    const int steps = std::atoi(argc > 2 ? argv[2] : "500"), threads = std::atoi(argc > 3 ? argv[3] : "1");
    open_topologies();
    many_at_once();
    std::vector<MPI_Comm> bases(static_cast<std::size_t>(threads));
    for (MPI_Comm& base : bases) MPI_Comm_dup(MPI_COMM_WORLD, &base);
    std::vector<std::thread> players;
    for (int t = 0; t < threads; ++t)
        players.emplace_back([&, t] {
            Player(bases[static_cast<std::size_t>(t)], seed + static_cast<unsigned>(t)).play(steps);
        });
    for (std::thread& player : players) player.join();
    const int verdict = finish("meetings");
    for (MPI_Comm& base : bases) MPI_Comm_free(&base);
    MPI_Finalize();
    return verdict;
}
