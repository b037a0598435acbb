// SPDX-License-Identifier: BSD-3-Clause
//
// The library's algorithms for several nodes, and others to compare with, on machines that SimGrid simulates:
// the schedules that lib/algorithms makes, walked by lib/exec/walk.h, with SMPI's messages. Made and started
// by bench/simulate/run. docs/simulation.md says what the times mean.
//
//   simulate COLLECTIVE RANKS_PER_NODE BYTES[,BYTES...] MOVED COPIES CONTENDER...
//     MOVED   blocks are really moved, and looked at in the end, while all buffers together have at most so
//             many MiB; beyond that only times are modelled
//     COPIES  what copying on a node costs: so many GB/s and Costs::copy_s for each run of blocks; or free
// Prints a CSV line for each contender and size (bench/simulate/run names the columns); exit status 1 if a
// block was wrong.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "exec/walk.h"
#include "plan.h"
#include "view.h"

namespace simulate {
namespace {

using coco::algorithms::Exchange;
using coco::schedule::Area;
using coco::schedule::Schedule;

double wall_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Options {
    std::vector<int> sizes;
    std::vector<std::string> contenders;
    double most_moved_bytes = 0;
    std::string copies;
};

// The byte at `i` of the block that `sender` owes `receiver`.
std::byte content(int sender, int receiver, std::int64_t i) {
    auto hash = static_cast<std::uint32_t>(sender) * 2654435761u +
                static_cast<std::uint32_t>(receiver) * 40503u + static_cast<std::uint32_t>(i) * 97u;
    return static_cast<std::byte>(hash >> 16 ^ hash);
}

class Measurement {
  public:
    Measurement(World& world, int self, MPI_Comm leaders) : world_(world), self_(self), leaders_(leaders) {}

    void run(const std::string& contender, const Options& options) {
        double begin_s = wall_s();
        std::string error;
        auto plan = make_plan(contender, world_, self_, error);
        if (!plan) {
            if (self_ == 0) std::fprintf(stderr, "simulate: %s\n", error.c_str());
            std::exit(2);
        }
        world_.barrier->wait();
        double made_s = wall_s() - begin_s;
        for (int bytes : options.sizes) {
            prepare(*plan, bytes, options.most_moved_bytes);
            double measure_s = wall_s(), start = simgrid::s4u::Engine::get_clock();
            perform(*plan, bytes);
            check();
            world_.barrier->wait();
            if (self_ == 0) print(contender, options.copies, start, made_s, wall_s() - measure_s);
            world_.barrier->wait();
        }
    }

  private:
    std::int64_t blocks_of(Area area) const {
        return area == Area::send && world_.exchange == Exchange::allgather ? 1 : world_.ranks;
    }

    // All ranks go on at the same simulated time.
    void prepare(const Plan& plan, int bytes, double most_moved_bytes) {
        Rank& me = world_.rank[static_cast<std::size_t>(self_)];
        me.begin();
        if (self_ == 0) begin_world(plan, bytes, most_moved_bytes);
        world_.barrier->wait();
        for (Area area : {Area::send, Area::recv, Area::scratch}) {
            std::int64_t blocks = area == Area::scratch ? plan.first.scratch_blocks : blocks_of(area);
            me.areas.of[static_cast<int>(area)].reset(world_.moves ? new std::byte[blocks * bytes] : nullptr);
        }
        if (world_.moves) fill();
        world_.steps += std::ssize(plan.first.steps) + std::ssize(plan.second.steps);
        world_.barrier->wait();
    }
    void begin_world(const Plan& plan, int bytes, double most_moved_bytes) {
        double all =
            static_cast<double>(blocks_of(Area::send) + blocks_of(Area::recv) + plan.first.scratch_blocks);
        world_.moves = all * bytes * world_.ranks <= most_moved_bytes;
        world_.block_bytes = bytes;
        world_.last_end = 0;
        world_.wrong = world_.steps = world_.messages = world_.message_bytes = 0;
        std::int64_t most = std::max<std::int64_t>(plan.first.scratch_blocks, world_.ranks) + world_.ranks;
        world_.any = std::vector<std::byte>(world_.moves ? 0 : static_cast<std::size_t>(most * bytes));
    }
    void fill() {
        std::byte* to = buffer(Area::send);
        for (int r = 0; r < blocks_of(Area::send); ++r)
            for (std::int64_t i = 0; i < world_.block_bytes; ++i) *to++ = content(self_, r, i);
        std::memset(buffer(Area::recv), 0xEE, static_cast<std::size_t>(world_.ranks * world_.block_bytes));
    }

    void perform(const Plan& plan, int bytes) {
        View view(world_, self_);
        if (plan.mpi) {
            whole(bytes);
            view.look_at_clock();
        } else {
            coco::exec::walk(plan.first, view);
            if (plan.inner) exchange_bundles(view, bytes);
            coco::exec::walk(plan.second, view);
        }
        view.catch_up();
        world_.last_end = std::max(world_.last_end, view.now());
    }
    void whole(int bytes) {
        auto* call = world_.exchange == Exchange::alltoall ? MPI_Alltoall : MPI_Allgather;
        call(buffer(Area::send), bytes, MPI_BYTE, buffer(Area::recv), bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
    void exchange_bundles(View& view, int bytes) {
        if (self_ % world_.per_node != 0) return;
        view.catch_up();
        int bundle = world_.per_node * world_.per_node * bytes;
        std::byte* out = buffer(Area::scratch);
        MPI_Alltoall(out, bundle, MPI_BYTE, out + std::int64_t{world_.ranks} * world_.per_node * bytes,
                     bundle, MPI_BYTE, leaders_);
        view.look_at_clock();
    }

    void check() {
        if (!world_.moves) return;
        const std::byte* at = buffer(Area::recv);
        int receiver = world_.exchange == Exchange::alltoall ? self_ : 0;
        for (int r = 0; r < world_.ranks; ++r) {
            bool right = true;
            for (std::int64_t i = 0; i < world_.block_bytes; ++i) right &= *at++ == content(r, receiver, i);
            world_.wrong += !right;
        }
    }
    std::byte* buffer(Area area) {
        if (!world_.moves)  // SMPI sees two
            return world_.any.data() + (area == Area::recv ? world_.ranks * world_.block_bytes : 0);
        return world_.rank[static_cast<std::size_t>(self_)].areas.of[static_cast<int>(area)].get();
    }

    void print(const std::string& contender, const std::string& copies, double start, double made_s,
               double took_s) const {
        auto ranks = static_cast<double>(world_.ranks);
        std::printf("%s,%d,%d,\"%s\",%s,%lld,%.3f,%s,%.1f,%.0f,%.1f,%.2f,%.2f\n",
                    world_.exchange == Exchange::alltoall ? "alltoall" : "allgather", world_.map.nodes(),
                    world_.per_node, contender.c_str(), copies.c_str(),
                    static_cast<long long>(world_.block_bytes), (world_.last_end - start) * 1e6,
                    !world_.moves       ? "no"
                    : world_.wrong == 0 ? "yes"
                                        : "WRONG",
                    static_cast<double>(world_.messages) / ranks,
                    static_cast<double>(world_.message_bytes) / ranks,
                    static_cast<double>(world_.steps) / ranks, made_s, took_s);
        std::fflush(stdout);
        if (world_.wrong != 0) std::exit(1);
    }

    World& world_;
    const int self_;
    const MPI_Comm leaders_;
};

World& shared_world(int ranks, int per_node) {
    static World world(ranks, per_node);
    return world;
}

Options parse(char** arguments) {
    Options options;
    std::string sizes = arguments[3];
    for (std::size_t at = 0; at < sizes.size(); at = sizes.find_first_of(',', at), at += at < sizes.size())
        options.sizes.push_back(std::atoi(sizes.c_str() + at));
    options.most_moved_bytes = std::atof(arguments[4]) * 1048576;
    options.copies = arguments[5];
    for (char** name = arguments + 6; *name != nullptr; ++name) options.contenders.emplace_back(*name);
    return options;
}

Costs costs_of(const std::string& copies) {
    Costs costs;
    costs.byte_s = copies == "free" ? 0 : 1e-9 / std::atof(copies.c_str());
    if (copies == "free") costs.copy_s = 0;
    return costs;
}

int simulate_rank(int count, char** arguments) {
    int self = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int per_node = count < 7 ? 0 : std::atoi(arguments[2]);
    if (per_node < 1 || ranks % per_node != 0) {
        if (self == 0) std::fprintf(stderr, "usage: see the head of simulate.cc\n");
        return 2;
    }
    World& world = shared_world(ranks, per_node);
    world.exchange = arguments[1] == std::string("allgather") ? Exchange::allgather : Exchange::alltoall;
    Options options = parse(arguments);
    world.costs = costs_of(options.copies);
    MPI_Comm leaders = MPI_COMM_NULL;
    for (const std::string& name : options.contenders)
        if (name == "leader+mpi" && leaders == MPI_COMM_NULL)
            MPI_Comm_split(MPI_COMM_WORLD, self % per_node, self, &leaders);
    Measurement measurement(world, self, leaders);
    for (const std::string& name : options.contenders) measurement.run(name, options);
    return 0;
}

}  // namespace
}  // namespace simulate

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    int status = simulate::simulate_rank(count, arguments);
    MPI_Finalize();
    return status;
}
