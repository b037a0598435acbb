// SPDX-License-Identifier: BSD-3-Clause
//
// Right programs in which neighbours send and receive plain blocks of unlike sizes, so that ranks which went
// by the size alone would choose different algorithms: every byte must come, and every call end, whatever the
// rules. The sizes go through those at which rules change, in calls enough for rules that count them.
//
//   neighbor_sizes_test          all topologies
//   neighbor_sizes_test same N [all]   N equal calls of neighbor_allgather on a ring, or of all with all, and
//                                      nothing else
//   neighbor_sizes_test wrong    a wrong one: rank 0 of an odd ring names two sizes
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "support/check.h"
#include "support/open_comm.h"

namespace {

using namespace test;

// Ranks may only take part in calls on communicators that they are in: all are in all.
struct Graph {
    std::vector<int> sources, destinations;
    // Ints of a block from a rank; of all its blocks the same.
    std::function<int(int from, int scale)> ints_from;
};

MPI_Comm make(const Graph& graph) {
    std::vector<int> in = graph.sources, out = graph.destinations;
    const int sources = static_cast<int>(in.size()), destinations = static_cast<int>(out.size());
    in.resize(in.size() + 1);  // Open MPI takes no null pointer for an empty list
    out.resize(out.size() + 1);
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, sources, in.data(), MPI_UNWEIGHTED, destinations,
                                   out.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    test::open_comm(comm);
    return comm;
}

int value(int from, int to, int i, int call) { return ((from * 64 + to) * 64 + call) * 1024 + i % 1024; }

constexpr int kEverybody = 63;

// One call, and whether what came is what was sent.
void check_call(const Graph& graph, MPI_Comm comm, bool personal, int scale, int call) {
    const int rank = world_rank();
    const auto blocks_out = personal ? graph.destinations.size() : 1;
    const int out = graph.ints_from(rank, scale);
    const int in = graph.sources.empty() ? 1 : graph.ints_from(graph.sources[0], scale);
    std::vector<int> sent,
        came(std::max<std::size_t>(1, graph.sources.size() * static_cast<unsigned>(in)), -1);
    for (std::size_t b = 0; b < blocks_out; ++b)
        for (int i = 0; i < out; ++i)
            sent.push_back(value(rank, personal ? graph.destinations[b] : kEverybody, i, call));
    sent.resize(sent.size() + 1);
    (personal ? MPI_Neighbor_alltoall : MPI_Neighbor_allgather)(sent.data(), out, MPI_INT, came.data(), in,
                                                                MPI_INT, comm);
    int wrong = 0;
    for (std::size_t b = 0; b < graph.sources.size(); ++b)
        for (int i = 0; i < in; ++i)
            wrong += came[b * static_cast<std::size_t>(in) + static_cast<std::size_t>(i)] !=
                     value(graph.sources[b], personal ? rank : kEverybody, i, call);
    if (wrong != 0) fail(__FILE__, __LINE__, personal ? "alltoall" : "allgather");
}

void play(const Graph& graph) {
    constexpr int kCallsAlike = 6;
    MPI_Comm comm = make(graph);
    int nothing = 0;
    std::vector<int> came(graph.sources.size() + 1);
    // The first calls are the library's, and not every library can do what follows.
    for (int i = 0; i < 4; ++i) MPI_Neighbor_allgather(&nothing, 1, MPI_INT, came.data(), 1, MPI_INT, comm);
    for (int round = 0; round < 2; ++round)
        for (int scale : {1, 5, 40, 300, 2000})
            for (int call = 0; call < kCallsAlike; ++call)
                for (bool personal : {true, false}) check_call(graph, comm, personal, scale, call);
    MPI_Comm_free(&comm);
}

// Each rank sends to the next one, and each edge has a size of its own.
Graph ring_of_sizes() {
    const int rank = world_rank(), size = world_size();
    return {{(rank + size - 1) % size}, {(rank + 1) % size}, [](int from, int scale) {
                return scale * (1 + from);
            }};
}

// Both neighbours, alternately of two sizes where that is right: on an even number of ranks.
Graph even_ring() {
    const int rank = world_rank(), size = world_size();
    const std::vector<int> both = {(rank + size - 1) % size, (rank + 1) % size};
    return {both, both,
            [size](int from, int scale) { return size % 2 == 0 ? scale * (1 + 9 * (from % 2)) : scale; }};
}

// All ranks to all, halves apart, each with its own size.
Graph halves() {
    const int rank = world_rank(), size = world_size(), half = size / 2;
    std::vector<int> mine;
    for (int r = rank < half ? 0 : half; r < (rank < half ? half : size); ++r) mine.push_back(r);
    return {mine, mine, [half](int from, int scale) { return from < half ? scale : 7 * scale; }};
}

// Rank 0 tells the others; they tell it nothing.
Graph star() {
    const int rank = world_rank(), size = world_size();
    std::vector<int> others;
    for (int r = 1; r < size; ++r) others.push_back(r);
    if (rank == 0) return {{}, others, [](int, int scale) { return scale; }};
    // A rank that sends to nobody may name any size there.
    return {{0}, {}, [rank](int from, int scale) { return from == rank ? 3 * rank : scale; }};
}

// As the star, but what comes back has another size, and the last rank sends nothing: it knows one size of
// two.
Graph half_star() {
    const int rank = world_rank(), size = world_size();
    std::vector<int> others, answering;
    for (int r = 1; r < size; ++r) others.push_back(r);
    for (int r = 1; r < size - 1; ++r) answering.push_back(r);
    auto ints = [](int from, int scale) { return from == 0 ? scale : 11 * scale; };
    if (rank == 0) return {answering, others, ints};
    return {{0}, rank == size - 1 ? std::vector<int>{} : std::vector<int>{0}, ints};
}

// Everybody to everybody else.
Graph everybody() {
    std::vector<int> others;
    for (int r = 0; r < world_size(); ++r)
        if (r != world_rank()) others.push_back(r);
    return {others, others, [](int, int scale) { return scale; }};
}

void play_same(const Graph& graph, int calls) {
    MPI_Comm comm = make(graph);
    std::vector<int> came(graph.sources.size() + 1);
    int mine = 0;
    for (int i = 0; i < calls; ++i) {
        mine = 1000 * world_rank() + i;
        MPI_Neighbor_allgather(&mine, 1, MPI_INT, came.data(), 1, MPI_INT, comm);
        for (std::size_t b = 0; b < graph.sources.size(); ++b)
            if (came[b] != 1000 * graph.sources[b] + i) fail(__FILE__, __LINE__, "allgather");
    }
    MPI_Comm_free(&comm);
}

void play_wrong() {
    const Graph graph = even_ring();
    MPI_Comm comm = make(graph);
    std::vector<long> sent(64, world_rank()), came(64);
    // The first calls are the library's.
    for (int i = 0; i < 6; ++i) {
        const int count = i == 5 && world_rank() == 0 ? 4 : 1;
        MPI_Neighbor_alltoall(sent.data(), 1, MPI_LONG, came.data(), count, MPI_LONG, comm);
    }
    MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc > 2 && std::string(argv[1]) == "same")
        play_same(argc > 3 ? everybody() : even_ring(), std::atoi(argv[2]));
    else if (argc > 1 && std::string(argv[1]) == "wrong")
        play_wrong();
    else
        for (const Graph& graph : {ring_of_sizes(), even_ring(), halves(), star(), half_star()}) play(graph);
    const int verdict = finish("neighbor sizes");
    MPI_Finalize();
    return verdict;
}
