// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives on memory of a device, which no processor can touch: devices_test RUNTIME WHEN SIZES [nodes],
// with a stand-in for CUDA's driver (RUNTIME, a file) and one for an MPI library that knows its memory, below
// libcoco. WHEN: the runtime is loaded and used
//   before   the communicators are set up
//   after    they are, and have run calls; from the second case on it hides until then that it is used
//   never    it is loaded, no more: all calls are libcoco's
// SIZES is all, few, or silent: few, and the runtime does not say whose an address is.
// Each case has a communicator of its own.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "support/check.h"
#include "support/open_comm.h"

namespace {

int g_rank = 0, g_ranks = 0;
void* (*g_allocate)(std::size_t) = nullptr;
void (*g_free)(void*) = nullptr;
void* (*g_shadow)(const void*) = nullptr;
void (*g_hide_context)(int) = nullptr;
void (*g_be_silent)() = nullptr;
int (*g_layer_calls)() = nullptr;

template <class Function>
void find(Function& function, void* library, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) {
        std::fprintf(stderr, "there is no %s\n", name);
        std::abort();
    }
}

void load_runtime(const char* file) {
    void* runtime = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (runtime == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        std::abort();
    }
    find(g_allocate, runtime, "device_allocate");
    find(g_free, runtime, "device_free");
    find(g_shadow, runtime, "device_shadow");
    find(g_hide_context, runtime, "device_hide_context");
    find(g_be_silent, runtime, "device_be_silent");
}

// Ints in memory of the device, or of malloc's.
class Buffer {
  public:
    Buffer(std::size_t ints, bool on_device)
        : ints_(ints),
          on_device_(on_device),
          memory_(on_device ? g_allocate(bytes()) : std::malloc(bytes())) {
        for (std::size_t i = 0; i < ints; ++i) seen()[i] = -1;
    }
    ~Buffer() { on_device_ ? g_free(memory_) : std::free(memory_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    void* at() const { return memory_; }
    int* seen() const { return static_cast<int*>(on_device_ ? g_shadow(memory_) : memory_); }

  private:
    std::size_t bytes() const { return (ints_ + 1) * sizeof(int); }
    std::size_t ints_;
    bool on_device_;
    void* memory_;
};

int value(int from, int to, std::size_t i) {
    return (from * 64 + to) * 4096 + static_cast<int>((i * 7 + 3) % 4096);
}

// What one call is: `peers` blocks on each side, or one of all ranks'.
struct Kind {
    const char* name;
    bool personal, in_place, neighbors, of_type;
    std::function<void(const void* from, void* to, int ints, MPI_Comm comm)> call;
};

std::vector<int> g_counts, g_places;
std::vector<MPI_Aint> g_wide_places;
std::vector<MPI_Datatype> g_types;
MPI_Datatype g_every_other;  // one int of two

// The arrays of v and w forms, for so many blocks.
void prepare(int blocks, int ints) {
    const auto size = static_cast<std::size_t>(blocks);
    g_counts.assign(size, ints);
    g_types.assign(size, MPI_INT);
    g_places.resize(size);
    g_wide_places.resize(size);
    for (int b = 0; b < blocks; ++b) {
        g_places[static_cast<std::size_t>(b)] = b * ints;
        g_wide_places[static_cast<std::size_t>(b)] =
            static_cast<MPI_Aint>(b) * ints * static_cast<MPI_Aint>(sizeof(int));
    }
}
std::vector<int> narrow(const std::vector<MPI_Aint>& wide) { return {wide.begin(), wide.end()}; }

std::vector<Kind> exchanges() {
    auto plain = [](auto function) {
        return [=](const void* from, void* to, int ints, MPI_Comm comm) {
            function(from, ints, MPI_INT, to, ints, MPI_INT, comm);
        };
    };
    auto v = [](const void* from, void* to, int, MPI_Comm comm) {
        MPI_Alltoallv(from, g_counts.data(), g_places.data(), MPI_INT, to, g_counts.data(), g_places.data(),
                      MPI_INT, comm);
    };
    auto w = [](const void* from, void* to, int, MPI_Comm comm) {
        const std::vector<int> places = narrow(g_wide_places);
        MPI_Alltoallw(from, g_counts.data(), places.data(), g_types.data(), to, g_counts.data(),
                      places.data(), g_types.data(), comm);
    };
    auto gather_v = [](const void* from, void* to, int ints, MPI_Comm comm) {
        MPI_Allgatherv(from, ints, MPI_INT, to, g_counts.data(), g_places.data(), MPI_INT, comm);
    };
    auto with_holes = [](const void* from, void* to, int ints, MPI_Comm comm) {
        MPI_Alltoall(from, ints / 2, g_every_other, to, ints / 2, g_every_other, comm);
    };
    return {{"alltoall", true, false, false, false, plain(MPI_Alltoall)},
            {"alltoall in place", true, true, false, false, plain(MPI_Alltoall)},
            {"alltoall with holes", true, false, false, true, with_holes},
            {"alltoallv", true, false, false, false, v},
            {"alltoallv in place", true, true, false, false, v},
            {"alltoallw", true, false, false, false, w},
            {"alltoallw in place", true, true, false, false, w},
            {"allgather", false, false, false, false, plain(MPI_Allgather)},
            {"allgather in place", false, true, false, false, plain(MPI_Allgather)},
            {"allgatherv", false, false, false, false, gather_v},
            {"allgatherv in place", false, true, false, false, gather_v}};
}

std::vector<Kind> neighbor_exchanges() {
    auto plain = [](auto function) {
        return [=](const void* from, void* to, int ints, MPI_Comm comm) {
            function(from, ints, MPI_INT, to, ints, MPI_INT, comm);
        };
    };
    auto v = [](const void* from, void* to, int, MPI_Comm comm) {
        MPI_Neighbor_alltoallv(from, g_counts.data(), g_places.data(), MPI_INT, to, g_counts.data(),
                               g_places.data(), MPI_INT, comm);
    };
    auto w = [](const void* from, void* to, int, MPI_Comm comm) {
        MPI_Neighbor_alltoallw(from, g_counts.data(), g_wide_places.data(), g_types.data(), to,
                               g_counts.data(), g_wide_places.data(), g_types.data(), comm);
    };
    auto gather_v = [](const void* from, void* to, int ints, MPI_Comm comm) {
        MPI_Neighbor_allgatherv(from, ints, MPI_INT, to, g_counts.data(), g_places.data(), MPI_INT, comm);
    };
    return {{"neighbor_alltoall", true, false, true, false, plain(MPI_Neighbor_alltoall)},
            {"neighbor_alltoallv", true, false, true, false, v},
            {"neighbor_alltoallw", true, false, true, false, w},
            {"neighbor_allgather", false, false, true, false, plain(MPI_Neighbor_allgather)},
            {"neighbor_allgatherv", false, false, true, false, gather_v}};
}

// Who has which buffers on the device.
struct Placing {
    const char* name;
    bool send, recv;
    int rank;  // that one alone; -1: each
    bool has(bool side) const { return side && (rank < 0 || rank == g_rank); }
};
constexpr Placing kPlacings[] = {{"both", true, true, -1},           {"send", true, false, -1},
                                 {"receive", false, true, -1},       {"both of rank 1", true, true, 1},
                                 {"send of rank 0", true, false, 0}, {"receive of rank 0", false, true, 0}};

bool g_is_after = false, g_is_never = false;
bool g_over_nodes = false;

// All collectives on it go to libcoco from now on, but those of neighbours with one call more.
void use(MPI_Comm comm, const Kind* neighbors) {
    constexpr int kInts = 8192, kBlocks = 3;
    const int blocks = neighbors != nullptr ? 1 : g_ranks;
    std::vector<int> from(static_cast<std::size_t>(blocks * kInts)), to(from.size());
    prepare(blocks, kInts);
    for (int call = 0; call < kBlocks; ++call)
        if (neighbors != nullptr)
            neighbors->call(from.data(), to.data(), kInts, comm);
        else
            MPI_Alltoall(from.data(), kInts, MPI_INT, to.data(), kInts, MPI_INT, comm);
}

MPI_Comm make_comm(const Kind* neighbors) {
    MPI_Comm comm;
    if (neighbors == nullptr) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    } else {
        const int left = (g_rank + g_ranks - 1) % g_ranks, right = (g_rank + 1) % g_ranks;
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED,
                                       MPI_INFO_NULL, 0, &comm);
    }
    if (g_is_after) g_hide_context(1);
    if (neighbors != nullptr) test::open_comm(comm);
    use(comm, neighbors);
    if (g_is_after) g_hide_context(0);
    return comm;
}

void complain(const char* what, const char* call, const char* placing, int ints) {
    if (++test::failures <= 20)
        std::fprintf(stderr, "rank %d: %s of %d ints, %s on the device: %s\n", g_rank, call, ints, placing,
                     what);
}

bool names_device(const Kind& kind, const Placing& placing) {
    return placing.send || (placing.recv && !kind.in_place);
}

// Whether every rank has to see the call handed back: not where ranks would have written over what they still
// have to send, and not where ranks have met before the device was used.
bool is_handed_back(const Kind& kind, const Placing& placing) {
    if (g_is_never) return false;
    if (!g_is_after && (kind.neighbors || g_over_nodes)) return true;
    return names_device(kind, placing) && !kind.neighbors && !g_over_nodes &&
           !(kind.in_place && kind.personal);
}

void run(const Kind& kind, const Placing& placing, int ints, MPI_Comm comm, bool again) {
    // Neighbours form a ring, in which each sends to the right.
    const int blocks = kind.neighbors ? 1 : g_ranks;
    const auto sender_of = [&](int block) {
        return kind.neighbors ? (g_rank + g_ranks - 1) % g_ranks : block;
    };
    const int receiver = kind.neighbors || !kind.personal ? 0 : g_rank;
    const auto all = static_cast<std::size_t>(blocks * ints), one = static_cast<std::size_t>(ints);
    Buffer send(kind.personal ? all : one, !kind.in_place && placing.has(placing.send));
    Buffer recv(all, placing.has(kind.in_place ? placing.send : placing.recv));
    const std::size_t own = kind.personal ? 0 : static_cast<std::size_t>(g_rank) * one;
    int* const sent = kind.in_place ? recv.seen() + own : send.seen();
    for (int b = 0; b < (kind.personal ? blocks : 1); ++b)
        for (std::size_t i = 0; i < one; ++i)
            if (!kind.of_type || i % 2 == 0)
                sent[static_cast<std::size_t>(b) * one + i] = value(g_rank, kind.personal ? b : 0, i);
    prepare(blocks, ints);
    const int before = g_layer_calls();
    kind.call(kind.in_place ? MPI_IN_PLACE : send.at(), recv.at(), ints, comm);
    const int handed_back = g_layer_calls() - before;
    if (is_handed_back(kind, placing) && handed_back != 1)
        complain("not handed back", kind.name, placing.name, ints);
    if (again && handed_back != 1) complain("the next call not handed back", kind.name, placing.name, ints);
    if (g_is_never && handed_back != 0) complain("handed back", kind.name, placing.name, ints);
    for (int b = 0; b < blocks; ++b)
        for (std::size_t i = 0; i < one; ++i) {
            const int right = kind.of_type && i % 2 == 1 ? -1 : value(sender_of(b), receiver, i);
            if (recv.seen()[static_cast<std::size_t>(b) * one + i] != right)
                return complain("wrong data", kind.name, placing.name, ints);
        }
}

void run_bcast(const Placing& placing, int root, int ints, MPI_Comm comm) {
    const bool on_device = placing.has(g_rank == root ? placing.send : placing.recv);
    const bool root_has = placing.send && (placing.rank < 0 || placing.rank == root);
    Buffer buffer(static_cast<std::size_t>(ints), on_device);
    if (g_rank == root)
        for (std::size_t i = 0; i < static_cast<std::size_t>(ints); ++i) buffer.seen()[i] = value(root, 0, i);
    const int before = g_layer_calls();
    MPI_Bcast(buffer.at(), ints, MPI_INT, root, comm);
    const int handed_back = g_layer_calls() - before;
    const bool must = !g_is_never && root_has && (g_over_nodes ? !g_is_after : true);
    if (must && handed_back != 1) complain("not handed back", "bcast", placing.name, ints);
    for (std::size_t i = 0; i < static_cast<std::size_t>(ints); ++i)
        if (buffer.seen()[i] != value(root, 0, i)) return complain("wrong data", "bcast", placing.name, ints);
}

void use_device() {
    if (!g_is_never) g_free(g_allocate(64));
}

// `again`: the calls that follow on the communicator, whatever buffers they name, are handed back, too.
void run_case(const Kind& kind, const Placing& placing, int ints) {
    MPI_Comm comm = make_comm(kind.neighbors ? &kind : nullptr);
    run(kind, placing, ints, comm, false);
    const bool closes = !g_is_never && names_device(kind, placing) && !kind.neighbors && !g_over_nodes;
    run(kind, {"none", false, false, -1}, ints, comm, closes);
    MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
    CHECK(argc >= 4);
    const std::string_view when = argv[2];
    g_is_after = when == "after";
    g_is_never = when == "never";
    const std::string_view how = argv[3];
    g_over_nodes = argc > 4;
    if (!g_is_after) load_runtime(argv[1]);
    if (!g_is_after) use_device();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
    find(g_layer_calls, RTLD_DEFAULT, "device_layer_calls");
    MPI_Type_vector(1, 1, 2, MPI_INT, &g_every_other);
    MPI_Type_create_resized(g_every_other, 0, 2 * sizeof(int), &g_every_other);
    MPI_Type_commit(&g_every_other);
    if (g_is_after) {
        use(MPI_COMM_WORLD, nullptr);
        load_runtime(argv[1]);
    }
    if (how == "silent") g_be_silent();
    std::vector<Kind> kinds = exchanges();
    for (Kind& kind : neighbor_exchanges()) kinds.push_back(std::move(kind));
    const std::vector<int> sizes =
        how != "all" ? std::vector{2, 16 * 1024} : std::vector{2, 256, 3000, 16 * 1024, 256 * 1024};
    for (int ints : sizes)
        for (Placing placing : kPlacings) {
            if (g_is_never) placing = {"none", false, false, -1};
            for (const Kind& kind : kinds) run_case(kind, placing, ints);
            for (int root = 0; root < 2; ++root) {
                MPI_Comm comm = make_comm(nullptr);
                run_bcast(placing, root, ints, comm);
                run_bcast({"none", false, false, -1}, 1 - root, ints, comm);
                MPI_Comm_free(&comm);
            }
        }
    MPI_Type_free(&g_every_other);
    const int failures = test::finish("devices");
    MPI_Finalize();
    return failures;
}
