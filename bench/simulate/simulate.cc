// SPDX-License-Identifier: BSD-3-Clause
//
// The library's algorithms for several nodes, and others to compare with, on machines that SimGrid simulates:
// the schedules that lib/algorithms makes, walked by lib/exec/walk.h, with SMPI's messages. Made and started
// by bench/simulate/run. docs/simulation.md says what the times mean.
//
//   simulate COLLECTIVE[,COLLECTIVE...] RANKS_PER_NODE BYTES[,BYTES...] MOVED COPIES[,COPIES...] MACHINE
//   CONTENDER...
//     COLLECTIVE  alltoall, allgather, bcast, or alltoallv with blocks of BYTES, alltoallv-uneven: of 0 to
//                 BYTES, alltoallv-sparse: one of 16 of BYTES, the others empty; neighbor_alltoall@GRAPH or
//                 neighbor_allgather@GRAPH (names of graphs: graph.h; one graph in a run)
//     MOVED       blocks are really moved, and looked at in the end, while all buffers together have at most
//                 so many MiB; beyond that only times are modelled; of alltoallv the way of each block is
//                 looked at
//     COPIES      what copying on a node costs: so many GB/s and Costs::copy_s for each run of blocks; or
//     free
//     MACHINE     gap=NS: that a node's network card takes to start a message, all its ranks together; and,
//     with
//                 spaces between, what class Cpus takes (cpus.h); or -
// Prints a CSV line for each contender and size, and one for what neighbours had to find out first
// (bench/simulate/run names the columns); exit status 1 if a block was wrong.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#include <sstream>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "form.h"

namespace simulate {
namespace {

using coco::algorithms::Collective;

double wall_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

using Words = std::vector<std::string>;

struct Options {
    Words collectives, copies;
    std::vector<int> sizes;
    Words contenders;
    double most_moved_bytes = 0;
    std::unordered_map<std::string, std::string> machine;
};

class Measurement {
  public:
    Measurement(World& world, int self, const Options& options, const std::string& collective,
                const std::string& copies)
        : world_(world),
          self_(self),
          options_(options),
          collective_(collective),
          copies_(copies),
          form_(make_form(world, self)) {}

    // Plans that are chosen by size are made anew for each size.
    void run(const std::string& contender) {
        for (std::size_t i = 0; i < options_.sizes.size(); ++i) {
            const std::int64_t before = world_.block_bytes;
            const bool crosses = (options_.sizes[i] > kCombinedBytes) != (before > kCombinedBytes);
            world_.barrier->wait();
            world_.block_bytes = options_.sizes[i];
            if (i == 0 || contender == "default" || (crosses && is_neighbor(world_.collective)))
                plan(contender);
            if (i == 0 && self_ == 0 && plan_.setup != nullptr) print_setup(contender);
            measure(contender);
        }
    }

  private:
    void plan(const std::string& contender) {
        double begin_s = wall_s();
        std::string error;
        auto made = make_plan(contender, world_, self_, error);
        if (!made) {
            if (self_ == 0) std::fprintf(stderr, "simulate: %s\n", error.c_str());
            std::exit(2);
        }
        plan_ = std::move(*made);
        own().scratch_blocks = plan_.first.scratch_blocks;
        world_.barrier->wait();
        made_s_ = wall_s() - begin_s;
    }

    // All ranks go on at the same simulated time.
    void measure(const std::string& contender) {
        own().begin();
        if (self_ == 0) {
            world_.last_end = 0;
            world_.wrong = world_.steps = world_.messages = world_.message_bytes = 0;
            form_->prepare_world(plan_, options_.most_moved_bytes);
        }
        world_.barrier->wait();
        form_->prepare(plan_);
        world_.steps += std::ssize(plan_.first.steps) + std::ssize(plan_.second.steps);
        world_.barrier->wait();
        if (!is_left_to_mpi()) warm_up();
        if (world_.cpus) world_.cpus->begin();
        double measure_s = wall_s(), start = simgrid::s4u::Engine::get_clock();
        if (!is_left_to_mpi()) form_->perform(plan_);
        if (!is_left_to_mpi()) world_.wrong += form_->check(plan_);
        world_.barrier->wait();
        if (self_ == 0) print(plan_.label.empty() ? contender : plan_.label, start, wall_s() - measure_s);
        world_.barrier->wait();
    }

    // A call that the built-in rules leave to MPI takes no time here: it is compared with nothing.
    bool is_left_to_mpi() const { return plan_.mpi && !plan_.label.empty(); }

    // Many of SMPI's functions look at first where the ranks of a communicator sit, with messages.
    void warm_up() {
        constexpr int kFewRanks = 512;  // for which a call more takes little real time
        if (!plan_.mpi && !plan_.inner) return;
        if (world_.ranks <= kFewRanks) form_->perform(plan_);
        char byte = 0;
        MPI_Bcast(&byte, 1, MPI_BYTE, 0, MPI_COMM_WORLD);
        world_.barrier->wait();
        own().begin();
        world_.barrier->wait();
    }

    Rank& own() { return world_.rank[static_cast<std::size_t>(self_)]; }
    // Whether, and with what result, blocks were looked at.
    const char* looked_at() const {
        if (world_.wrong != 0) return "WRONG";
        bool followed = world_.collective == Collective::alltoallv && !plan_.mpi;
        return world_.moves || followed ? "yes" : "no";
    }

    void print(const std::string& contender, double start, double took_s) const {
        auto ranks = static_cast<double>(world_.ranks);
        std::printf("%s,%d,%d,\"%s\",%s,%lld,%.3f,%s,%.1f,%.0f,%.1f,%.2f,%.2f\n", collective_.c_str(),
                    world_.map.nodes(), world_.per_node, contender.c_str(), copies_.c_str(),
                    static_cast<long long>(world_.block_bytes), (world_.last_end - start) * 1e6, looked_at(),
                    static_cast<double>(world_.messages) / ranks,
                    static_cast<double>(world_.message_bytes) / ranks,
                    static_cast<double>(world_.steps) / ranks, made_s_, took_s);
        std::fflush(stdout);
        if (world_.wrong != 0) std::exit(1);
    }

    void print_setup(const std::string& contender) const {
        const SetupCost& cost = *plan_.setup;
        auto ranks = static_cast<double>(world_.ranks);
        double scheduling_s = 0;
        for (const Rank& rank : world_.rank) scheduling_s += rank.scheduling_s;
        std::printf("%s,%d,%d,\"%s\",%lld,%.1f,%.0f,%.1f,%.1f,%.1f\n", collective_.c_str(),
                    world_.map.nodes(), world_.per_node, contender.c_str(),
                    static_cast<long long>(cost.rounds), static_cast<double>(cost.letters) / ranks,
                    static_cast<double>(cost.bytes) / ranks, cost.network_s * 1e6, cost.cpu_s * 1e6,
                    scheduling_s / ranks * 1e6);
        std::fflush(stdout);
    }

    World& world_;
    const int self_;
    const Options& options_;
    const std::string& collective_;
    const std::string& copies_;
    const std::unique_ptr<Form> form_;
    Plan plan_;
    double made_s_ = 0;
};

World& shared_world(int ranks, int per_node) {
    static World world(ranks, per_node);
    return world;
}

Words split(const std::string& list) {
    Words words;
    std::istringstream in(list);
    for (std::string word; std::getline(in, word, ',');) words.push_back(word);
    return words;
}

Options parse(char** arguments) {
    Options options;
    options.collectives = split(arguments[1]);
    for (const std::string& size : split(arguments[3])) options.sizes.push_back(std::atoi(size.c_str()));
    options.most_moved_bytes = std::atof(arguments[4]) * 1048576;
    options.copies = split(arguments[5]);
    for (const std::string& word : split(arguments[6]))
        options.machine[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    for (char** name = arguments + 7; *name != nullptr; ++name) options.contenders.emplace_back(*name);
    return options;
}

Costs costs_of(const std::string& copies, const Cpus* cpus) {
    Costs costs;
    if (cpus != nullptr) {
        costs.send_s = cpus->send_s();
        costs.receive_s = cpus->receive_s();
    }
    costs.byte_s = copies == "free" ? 0 : 1e-9 / std::atof(copies.c_str());
    if (copies == "free") costs.copy_s = costs.element_s = 0;
    return costs;
}

// Messages to other nodes that would start within `gap_s` of the one before start later. SimGrid has no such
// limit, but asks how much longer than usual the latency of a message is.
void limit_messages(double gap_s) {
    using simgrid::s4u::Host;
    using simgrid::s4u::Link;
    static std::unordered_map<const Host*, double> free_s;
    auto factor = [gap_s](double, const Host* source, const Host* target, const std::vector<Link*>& links,
                          const std::unordered_set<simgrid::s4u::NetZone*>&) {
        double now = simgrid::s4u::Engine::get_clock(), latency_s = 0;
        for (const Link* link : links) latency_s += link->get_latency();
        if (source == target || latency_s <= 0) return 1.0;
        double start = std::max(now, free_s[source]);
        free_s[source] = start + gap_s;
        return 1 + (start - now) / latency_s;
    };
    simgrid::s4u::Engine::get_instance()->get_netzone_root()->get_network_model()->set_lat_factor_cb(factor);
}

void make_machine(const std::unordered_map<std::string, std::string>& words, World& world) {
    if (words.contains("gap")) limit_messages(std::atof(words.at("gap").c_str()) * 1e-9);
    if (words.contains("cpus")) world.cpus = std::make_unique<Cpus>(words, world.ranks);
}

// Neighbours: once for all collectives of a run. Returns: false if there is no such graph.
bool give_graph(const std::string& name, Collective collective, World& world) {
    const std::size_t at = name.find('@');
    if (world.graph != nullptr || !is_neighbor(collective)) return true;
    auto graph = at == std::string::npos ? std::nullopt : make_graph(name.substr(at + 1), world.map);
    if (!graph) return false;
    world.graph = std::make_unique<Graph>(std::move(*graph));
    world.setup = std::make_unique<Setup>(*world.graph, world.map);
    return true;
}

// Returns: false if there is no such collective.
bool choose_collective(const std::string& name, World& world) {
    std::string plain = name.substr(0, name.find_first_of("-@"));
    auto collective = coco::base::collective_of(plain);
    if (!collective || !give_graph(name, *collective, world)) return false;
    world.collective = *collective;
    if (name.ends_with("-uneven")) world.counts = Counts::uneven;
    if (name.ends_with("-sparse")) world.counts = Counts::sparse;
    return true;
}

int simulate_rank(int count, char** arguments) {
    int self = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int per_node = count < 8 ? 0 : std::atoi(arguments[2]);
    if (per_node < 1 || ranks % per_node != 0) {
        if (self == 0) std::fprintf(stderr, "usage: see the head of simulate.cc\n");
        return 2;
    }
    World& world = shared_world(ranks, per_node);
    Options options = parse(arguments);
    if (self == 0) make_machine(options.machine, world);
    for (const std::string& collective : options.collectives)
        for (const std::string& copies : options.copies) {
            if (!choose_collective(collective, world)) return 2;
            world.costs = costs_of(copies, world.cpus.get());
            Measurement measurement(world, self, options, collective, copies);
            for (const std::string& name : options.contenders) measurement.run(name);
        }
    return 0;
}

}  // namespace

std::unique_ptr<Form> make_form(World& world, int self) {
    using coco::algorithms::Exchange;
    if (world.collective == Collective::alltoallv) return make_sized_form(world, self);
    if (is_neighbor(world.collective)) return make_neighbor_form(world, self);
    if (coco::base::exchange_of(world.collective) == Exchange::bcast) return make_bcast_form(world, self);
    return make_plain_form(world, self);
}

}  // namespace simulate

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    int status = simulate::simulate_rank(count, arguments);
    MPI_Finalize();
    return status;
}
