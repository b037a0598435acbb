// SPDX-License-Identifier: BSD-3-Clause
#include "graphs.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <sstream>
#include <utility>

#include "peers.h"
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

Graph graph_among(Peers peers) {
    Graph graph;
    graph.sources = std::move(peers.sources);
    graph.destinations = std::move(peers.destinations);
    return graph;
}

Graph random_graph(const std::string& name, const Words& words) {
    double density = read_number(name, words[1], 0, 1);
    int seed = words.size() > 2 ? read_int(name, words[2], 0, 1 << 30) : 1;
    return graph_among(random_peers(density, seed, rank(), ranks()));
}

Graph moore_graph(const std::string& name, const Words& words) {
    int d = read_int(name, words[1], 1, kMostDimensions), radius = read_int(name, words[2], 1, kMostRadius);
    if (words.size() > 3 && words[3] != "all") give_up(name + ": '" + words[3] + "' is not 'all'");
    if (std::pow(2 * radius + 1, d) > 1e6) give_up(name + ": more than a million neighbours");
    return graph_among(moore_peers(dimensions_of(d), radius, words.size() > 3, rank()));
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
