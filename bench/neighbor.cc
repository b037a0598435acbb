// SPDX-License-Identifier: BSD-3-Clause
//
// Times MPI_Neighbor_X against the MPI library's own function, in one process, in turns (turns.h), on graphs
// of many kinds (graphs.h), with buffers on the heap. Run under `coco run` (or without: then both are the
// library). Before a size is timed every byte received is checked, of both; what is wrong ends in status 1.
//
//   mpiexec -n 8 coco run build/mpich/bench/neighbor alltoall --graph random:0.2 --graph moore:2:1 --to 16K
//
// Words: allgather allgatherv alltoall alltoallv alltoallw; the v and w forms with blocks from half of to one
// and a half times the size. Options: --graph NAME (several), --shuffle (neighbours named in any order),
// --from BYTES --to BYTES (powers of two), --rounds N, --batch-us T, --settle-us T, --csv, --cold, --fresh as
// in bench/collective, --private (buffers from mmap instead of malloc), --check (checks the sizes and times
// nothing).
//
// Below a table: what the first three calls on a new communicator take, when libcoco makes itself ready, and
// what later ones take, each timed alone. The first table's also make libcoco ready in the process.
#include <mpi.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "graphs.h"
#include "peers.h"
#include "turns.h"

namespace {

struct Collective {
    std::string name;
    bool gathers, unequal;
};

const std::vector<Collective> kCollectives = {{"allgather", true, false},
                                              {"allgatherv", true, true},
                                              {"alltoall", false, false},
                                              {"alltoallv", false, true},
                                              {"alltoallw", false, true}};

struct Options {
    std::vector<Collective> collectives;
    std::vector<std::string> graphs;
    bool shuffled = false, checks_only = false, in_mapping = false;
    bench::Timing timing;
};

constexpr int kEverybody = -1;
constexpr char kUntouched = 0x5a;
constexpr std::size_t kGuardBytes = 64;

// `nth`: of the blocks between this rank and the same peer.
struct Block {
    int peer, nth;
    std::size_t start, bytes;
};

// The blocks in the send or the receive buffer, and the lists that MPI is given. These end with an entry too
// many: both MPIs look for the first one (Open MPI refuses a null pointer) where there are no neighbours,
// too.
struct Side {
    std::vector<Block> blocks;
    std::vector<int> counts = {0}, starts = {0};
    std::vector<MPI_Aint> places = {0};
    std::vector<MPI_Datatype> types = {MPI_BYTE};
    std::size_t bytes = 0;

    void add(int peer, std::size_t block_bytes) {
        auto nth =
            std::count_if(blocks.begin(), blocks.end(), [&](const Block& b) { return b.peer == peer; });
        blocks.push_back({peer, static_cast<int>(nth), bytes, block_bytes});
        counts.back() = static_cast<int>(block_bytes);
        bytes += block_bytes;
        counts.push_back(0);
        starts.push_back(static_cast<int>(bytes));
        places.push_back(static_cast<MPI_Aint>(bytes));
        types.push_back(MPI_BYTE);
    }
};

std::size_t block_bytes(const Collective& c, long bytes, int from, int to) {
    if (!c.unequal) return bytes;
    return bytes / 2 + bench::mix(from, c.gathers ? kEverybody : to, bytes) % (bytes + 1);
}

Side send_side(const Collective& c, const bench::Graph& graph, long bytes) {
    Side side;
    for (int to : c.gathers ? std::vector<int>{kEverybody} : graph.destinations)
        side.add(to, block_bytes(c, bytes, bench::rank(), to));
    return side;
}

Side recv_side(const Collective& c, const bench::Graph& graph, long bytes) {
    Side side;
    for (int from : graph.sources) side.add(from, block_bytes(c, bytes, from, bench::rank()));
    return side;
}

// One call at one size: layouts, buffers with room for them, and the two ways to call.
struct Case {
    const Collective& collective;
    long bytes;
    Side send, recv;
    bench::Buffers buffers;

    bench::Pair calls(MPI_Comm comm) const;
};

bench::Pair Case::calls(MPI_Comm comm) const {
    using bench::pair_of;
    char *from = buffers.send.at, *to = buffers.recv.at;
    const int *counts = recv.counts.data(), *starts = recv.starts.data();
    int n = static_cast<int>(bytes);
    const std::string& name = collective.name;
    if (name == "allgather")
        return pair_of(&MPI_Neighbor_allgather, "PMPI_Neighbor_allgather", from, n, MPI_BYTE, to, n, MPI_BYTE,
                       comm);
    if (name == "allgatherv")
        return pair_of(&MPI_Neighbor_allgatherv, "PMPI_Neighbor_allgatherv", from, send.counts[0], MPI_BYTE,
                       to, counts, starts, MPI_BYTE, comm);
    if (name == "alltoall")
        return pair_of(&MPI_Neighbor_alltoall, "PMPI_Neighbor_alltoall", from, n, MPI_BYTE, to, n, MPI_BYTE,
                       comm);
    if (name == "alltoallv")
        return pair_of(&MPI_Neighbor_alltoallv, "PMPI_Neighbor_alltoallv", from, send.counts.data(),
                       send.starts.data(), MPI_BYTE, to, counts, starts, MPI_BYTE, comm);
    return pair_of(&MPI_Neighbor_alltoallw, "PMPI_Neighbor_alltoallw", from, send.counts.data(),
                   send.places.data(), send.types.data(), to, counts, recv.places.data(), recv.types.data(),
                   comm);
}

// --- right or wrong ---

int g_failures = 0;

std::string content(int from, int to, int nth, std::size_t bytes) {
    std::string text(bytes, 0);
    for (std::size_t i = 0; i < bytes; ++i)
        text[i] = static_cast<char>(bench::mix(bench::mix(from, to, nth), i, bytes));
    return text;
}

void fill(const Case& c) {
    for (const Block& b : c.send.blocks) {
        std::string text = content(bench::rank(), b.peer, b.nth, b.bytes);
        std::memcpy(c.buffers.send.at + b.start, text.data(), b.bytes);
    }
}

// The bytes that a call leaves in the receive buffer and behind its end.
std::string received_by(const bench::Call& call, const Case& c) {
    std::size_t bytes = c.recv.bytes + kGuardBytes;
    std::memset(c.buffers.recv.at, kUntouched, bytes);
    call();
    return {c.buffers.recv.at, bytes};
}

// Whether a block holds what its source sent. Of several edges between two ranks any may come first: MPIs
// differ there on small tori; `taken` are those that came before.
bool is_right(const Case& c, const Block& b, const std::string& received, std::vector<Block>& taken) {
    std::string text = received.substr(b.start, b.bytes);
    if (b.peer == MPI_PROC_NULL) return text == std::string(b.bytes, kUntouched);
    int to = c.collective.gathers ? kEverybody : bench::rank();
    int edges = static_cast<int>(std::count_if(c.recv.blocks.begin(), c.recv.blocks.end(),
                                               [&](const Block& other) { return other.peer == b.peer; }));
    for (int nth = 0; nth < edges; ++nth) {
        bool free = std::none_of(taken.begin(), taken.end(),
                                 [&](const Block& t) { return t.peer == b.peer && t.nth == nth; });
        if (free && text == content(b.peer, to, c.collective.gathers ? 0 : nth, b.bytes)) {
            taken.push_back({b.peer, nth, 0, 0});
            return true;
        }
    }
    return false;
}

void fail(const std::string& what) {
    if (++g_failures <= 5) std::fprintf(stderr, "rank %d: WRONG: %s\n", bench::rank(), what.c_str());
}

void check(const Case& c, const bench::Pair& calls, const std::string& what) {
    fill(c);
    std::string library = received_by(calls.library, c), ours = received_by(calls.ours, c);
    std::vector<Block> taken;
    for (const Block& b : c.recv.blocks) {
        std::string block = what + ", block from rank " + std::to_string(b.peer);
        if (!is_right(c, b, library, taken)) fail(block + ", as the library gives it");
        if (ours.compare(b.start, b.bytes, library, b.start, b.bytes) != 0)
            fail(block + ": not what the library gives");
    }
    for (const std::string& received : {library, ours})
        if (received.substr(c.recv.bytes) != std::string(kGuardBytes, kUntouched))
            fail(what + ": written to behind the end");
    for (const Block& b : c.send.blocks)
        if (content(bench::rank(), b.peer, b.nth, b.bytes)
                .compare(0, b.bytes, c.buffers.send.at + b.start, b.bytes))
            fail(what + ": the send buffer has changed");
}

// --- timing ---

// The first calls on a new communicator, and the median of later ones.
std::string first_calls(const Case& c, const bench::Graph& graph, bench::Call bench::Pair::*edition) {
    constexpr int kFirst = 3, kLater = 15;
    MPI_Comm comm = graph.make();
    bench::Call call = c.calls(comm).*edition;
    std::string text;
    char figure[32];
    for (int i = 0; i < kFirst; ++i) {
        std::snprintf(figure, sizeof figure, "%.1f ", bench::time_batch(call, 1, {}, c.buffers));
        text += figure;
    }
    std::vector<double> later;
    for (int i = 0; i < kLater; ++i) later.push_back(bench::time_batch(call, 1, {}, c.buffers));
    std::snprintf(figure, sizeof figure, "later %.1f", bench::median(later));
    MPI_Comm_free(&comm);
    return text + figure;
}

std::string set_up_times(const Case& c, const bench::Graph& graph) {
    first_calls(c, graph, &bench::Pair::library);  // MPI connects its ranks
    std::string ours = first_calls(c, graph, &bench::Pair::ours);
    return "first calls, us: " + ours + "; library " + first_calls(c, graph, &bench::Pair::library);
}

class Memory {
  public:
    Memory(std::size_t bytes, bool in_mapping) : bytes_(bytes), in_mapping_(in_mapping) {
        if (in_mapping)
            at_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        else if (posix_memalign(&at_, 4096, bytes) != 0)
            at_ = MAP_FAILED;
        if (at_ == MAP_FAILED) bench::give_up("no memory for the buffers");
        std::memset(at_, kUntouched, bytes);
    }
    ~Memory() {
        if (in_mapping_)
            munmap(at_, bytes_);
        else
            std::free(at_);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    char* at() const { return static_cast<char*>(at_); }

  private:
    void* at_ = nullptr;
    std::size_t bytes_;
    bool in_mapping_;
};

std::string title_of(const Collective& c, const bench::Graph& graph, long edges) {
    long mine = static_cast<long>(graph.sources.size()), least, most;
    MPI_Allreduce(&mine, &least, 1, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    return "neighbor_" + c.name + " on " + graph.name + ", " + std::to_string(bench::ranks()) + " ranks, " +
           std::to_string(edges) + " edges, " + std::to_string(least) + " to " + std::to_string(most) +
           " blocks received";
}

using CaseOf = std::function<Case(long bytes)>;

void check_all(const CaseOf& case_of, const bench::Graph& graph, const bench::Timing& t,
               const std::string& title) {
    MPI_Comm comm = graph.make();
    int failures = g_failures, all = 0;
    for (long bytes = t.from_bytes; bytes <= t.to_bytes; bytes *= 2) {
        Case c = case_of(bytes);
        check(c, c.calls(comm), title + ", " + std::to_string(bytes) + " bytes");
    }
    failures = g_failures - failures;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (bench::rank() == 0) std::printf("%s: %s\n", title.c_str(), all == 0 ? "right" : "WRONG");
    MPI_Comm_free(&comm);
}

void time_all(const CaseOf& case_of, const bench::Graph& graph, const bench::Timing& t,
              const std::string& title) {
    Case smallest = case_of(t.from_bytes);
    std::string set_up = set_up_times(smallest, graph), ranks = std::to_string(bench::ranks());
    bench::Table table(title, smallest.collective.name + "," + graph.name + "," + ranks, t.csv);
    MPI_Comm comm = graph.make();
    for (long bytes = t.from_bytes; bytes <= t.to_bytes; bytes *= 2) {
        Case c = case_of(bytes);
        check(c, c.calls(comm), title + ", " + std::to_string(bytes) + " bytes");
        table.row(bytes, bench::measure(c.calls(comm), t, c.buffers));
    }
    table.end();
    if (bench::rank() == 0 && !t.csv) std::printf("%10s %s\n", "", set_up.c_str());
    MPI_Comm_free(&comm);
}

void run(const Collective& collective, const bench::Graph& graph, long edges, const Options& o) {
    std::size_t send_blocks = collective.gathers ? 1 : graph.destinations.size();
    std::size_t room = o.timing.to_bytes * 3 / 2 + 1;
    const Memory send(send_blocks * room + kGuardBytes, o.in_mapping);
    const Memory recv(graph.sources.size() * room + kGuardBytes, o.in_mapping);
    const bench::Buffers memory{{send.at(), 0}, {recv.at(), 0}};
    auto case_of = [&](long bytes) {
        Case c{collective, bytes, send_side(collective, graph, bytes), recv_side(collective, graph, bytes),
               memory};
        c.buffers.send.bytes = c.send.bytes;
        c.buffers.recv.bytes = c.recv.bytes;
        return c;
    };
    (o.checks_only ? check_all : time_all)(case_of, graph, o.timing, title_of(collective, graph, edges));
}

// MPICH before 4.1 mixes up in- and outdegree in its MPI_Neighbor_alltoallw (its issue 6233): wrong data.
bool library_is_wrong(const Collective& c, const bench::Graph& graph) {
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000
    int mine = c.name == "alltoallw" && graph.sources.size() != graph.destinations.size(), any;
    MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return any != 0;
#else
    return (void)c, (void)graph, false;
#endif
}

void leave_out(const std::string& what, const char* why) {
    if (bench::rank() == 0) std::fprintf(stderr, "%s: %s: left out\n", what.c_str(), why);
}

void run(const bench::Graph& graph, const Options& o) {
    long degree = static_cast<long>(std::max(graph.sources.size(), graph.destinations.size())), most, edges;
    long mine = std::count_if(graph.sources.begin(), graph.sources.end(),
                              [](int source) { return source != MPI_PROC_NULL; });
    MPI_Allreduce(&degree, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &edges, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (most * (o.timing.to_bytes * 3 / 2 + 1) >= 1l << 31)
        bench::give_up("--to: a rank's blocks are to be less than 2 GiB together");
    if (edges == 0) return leave_out(graph.name, "no edges among so few ranks");
    for (const Collective& c : o.collectives)
        if (library_is_wrong(c, graph))
            leave_out("neighbor_" + c.name + " on " + graph.name, "this MPI's own is wrong here");
        else
            run(c, graph, edges, o);
}

Collective collective_of(const std::string& word) {
    std::string known;
    for (const Collective& c : kCollectives) {
        if (word == c.name || word == "neighbor_" + c.name) return c;
        known += " " + c.name;
    }
    bench::give_up("no neighbourhood collective '" + word + "':" + known);
}

Options parse(int argc, char** argv) {
    Options o;
    bench::Timing timing;
    timing.to_bytes = 64 << 10;
    o.timing = bench::read_timing(argc, argv, timing, [&](const std::string& word, const auto& value) {
        if (word == "--graph")
            o.graphs.push_back(value());
        else if (word == "--shuffle")
            o.shuffled = true;
        else if (word == "--private")
            o.in_mapping = true;
        else if (word == "--check")
            o.checks_only = true;
        else if (word[0] != '-')
            o.collectives.push_back(collective_of(word));
        else
            return false;
        return true;
    });
    if (o.collectives.empty()) o.collectives = {collective_of("allgather"), collective_of("alltoall")};
    if (o.graphs.empty()) o.graphs = {"random:0.2", "random:0.8", "moore:2:1", "torus:2", "cart:3"};
    return o;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options o = parse(argc, argv);
    std::vector<bench::Graph> graphs;  // all, so that a wrong name is told at once
    for (const std::string& name : o.graphs) graphs.push_back(bench::graph_of(name, o.shuffled));
    for (const bench::Graph& graph : graphs) run(graph, o);
    int failures = 0;
    MPI_Allreduce(&g_failures, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (bench::rank() == 0 && failures > 0) std::printf("%d WRONG\n", failures);
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
