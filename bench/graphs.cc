// SPDX-License-Identifier: BSD-3-Clause
#include "graphs.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>
#include <sstream>

#include "turns.h"

namespace bench {
namespace {

constexpr int kMostDimensions = 8, kMostRadius = 64;

using Words = std::vector<std::string>;

Words split(const std::string& name) {
    Words words;
    std::istringstream in(name);
    for (std::string word; std::getline(in, word, ':');) words.push_back(word);
    return words;
}

int read_int(const std::string& name, const std::string& text, int least, int most) {
    double value = read_number(name, text, least, most);
    if (value != std::floor(value)) give_up(name + ": '" + text + "' is no whole number");
    return static_cast<int>(value);
}

std::vector<int> dimensions_of(int d) {
    std::vector<int> dims(d);
    MPI_Dims_create(ranks(), d, dims.data());
    return dims;
}

Graph random_graph(const std::string& name, const Words& words) {
    double density = read_number(name, words[1], 0, 1);
    int seed = words.size() > 2 ? read_int(name, words[2], 0, 1 << 30) : 1;
    auto is_edge = [&](int from, int to) {
        return from != to && static_cast<double>(mix(seed, from, to) >> 11) < density * 0x1p53;
    };
    Graph graph;
    for (int r = 0; r < ranks(); ++r) {
        if (is_edge(r, rank())) graph.sources.push_back(r);
        if (is_edge(rank(), r)) graph.destinations.push_back(r);
    }
    return graph;
}

// The rank that lies `sign` times the offset from this one; offsets are numbers with a digit for each
// dimension.
int rank_at(const std::vector<int>& dims, int radius, int offset, int sign) {
    int there = 0, width = 1, here = rank();
    for (std::size_t d = dims.size(); d-- > 0; here /= dims[d], offset /= 2 * radius + 1) {
        int away = sign * (offset % (2 * radius + 1) - radius);
        there += width * (((here % dims[d] + away) % dims[d] + dims[d]) % dims[d]);
        width *= dims[d];
    }
    return there;
}

void keep_others_once(std::vector<int>& list) {
    std::vector<int> kept;
    for (int r : list)
        if (r != rank() && std::find(kept.begin(), kept.end(), r) == kept.end()) kept.push_back(r);
    list = kept;
}

Graph moore_graph(const std::string& name, const Words& words) {
    int d = read_int(name, words[1], 1, kMostDimensions), radius = read_int(name, words[2], 1, kMostRadius);
    if (words.size() > 3 && words[3] != "all") give_up(name + ": '" + words[3] + "' is not 'all'");
    double offsets = std::pow(2 * radius + 1, d);
    if (offsets > 1e6) give_up(name + ": more than a million neighbours");
    std::vector<int> dims = dimensions_of(d);
    Graph graph;
    for (int i = 0; i < static_cast<int>(offsets); ++i) {
        if (i == static_cast<int>(offsets) / 2) continue;  // the middle: this rank itself
        graph.destinations.push_back(rank_at(dims, radius, i, 1));
        graph.sources.push_back(rank_at(dims, radius, i, -1));
    }
    if (words.size() == 3)
        for (auto* list : {&graph.sources, &graph.destinations}) keep_others_once(*list);
    return graph;
}

MPI_Comm make_adjacent(const Graph& g) {
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(g.sources.size()), g.sources.data(),
                                   MPI_UNWEIGHTED, static_cast<int>(g.destinations.size()),
                                   g.destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    return comm;
}

Graph adjacent_graph(Graph graph, bool shuffled) {
    if (shuffled)
        for (auto* list : {&graph.sources, &graph.destinations})
            std::shuffle(list->begin(), list->end(), std::mt19937_64(mix(rank(), list == &graph.sources, 0)));
    graph.make = [=] { return make_adjacent(graph); };
    return graph;
}

Graph grid_graph(const std::string& name, const Words& words) {
    std::vector<int> dims = dimensions_of(read_int(name, words[1], 1, kMostDimensions));
    int d = static_cast<int>(dims.size());
    std::vector<int> periods(d, words[0] == "torus");
    Graph graph;
    graph.make = [=] {
        MPI_Comm comm;
        MPI_Cart_create(MPI_COMM_WORLD, d, dims.data(), periods.data(), 0, &comm);
        return comm;
    };
    MPI_Comm comm = graph.make();
    for (int i = 0; i < d; ++i) {
        int before, after;
        MPI_Cart_shift(comm, i, 1, &before, &after);
        graph.sources.insert(graph.sources.end(), {before, after});
    }
    graph.destinations = graph.sources;
    MPI_Comm_free(&comm);
    return graph;
}

}  // namespace

unsigned long mix(unsigned long a, unsigned long b, unsigned long c) {
    unsigned long x = a * 0x9e3779b97f4a7c15 + b;
    for (unsigned long more : {c, 0ul}) {  // splitmix64
        x += 0x9e3779b97f4a7c15;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
        x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
        x = (x ^ (x >> 31)) + more;
    }
    return x;
}

Graph graph_of(const std::string& name, bool shuffled) {
    Words words = split(name);
    std::size_t n = words.size();
    Graph graph;
    if (n >= 2 && n <= 3 && words[0] == "random")
        graph = adjacent_graph(random_graph(name, words), shuffled);
    else if (n >= 3 && n <= 4 && words[0] == "moore")
        graph = adjacent_graph(moore_graph(name, words), shuffled);
    else if (n == 2 && (words[0] == "cart" || words[0] == "torus"))
        graph = grid_graph(name, words);
    else
        give_up("no graph '" + name + "': random:DENSITY[:SEED] moore:D:R[:all] cart:D torus:D");
    graph.name = name;
    return graph;
}

}  // namespace bench
