// SPDX-License-Identifier: BSD-3-Clause
//
// Calls over several nodes: forms that share a schedule, one after the other; rests of messages between many
// leaders of unequal nodes; all forms, for who counts their messages. On one node: neighbours' messages.
// Usage: nodes_test mixed | rests | outside | refused | smaller | surplus | private_ring | counted BYTES...
//        nodes_test neighbors SPLIT BYTES...
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "support/open_comm.h"

namespace {

int g_rank, g_ranks, g_failures = 0;

char mark(int from, int to) { return static_cast<char>(from * 7 + to + 1); }

struct Blocks {
    explicit Blocks(int bytes)
        : bytes(bytes),
          send(static_cast<std::size_t>(bytes) * g_ranks),
          recv(send.size()),
          counts(static_cast<std::size_t>(g_ranks), bytes),
          displacements(counts.size()) {
        for (int r = 0; r < g_ranks; ++r) {
            displacements[static_cast<std::size_t>(r)] = r * bytes;
            std::memset(&send[static_cast<std::size_t>(r) * bytes], mark(g_rank, r), bytes);
        }
    }
    // In a gather, block 0 is for all.
    void check(const char* what, bool personal) const {
        for (std::size_t i = 0; i < recv.size(); ++i)
            if (recv[i] != mark(static_cast<int>(i) / bytes, personal ? g_rank : 0)) {
                std::fprintf(stderr, "rank %d: %s of %d bytes: byte %zu is wrong\n", g_rank, what, bytes, i);
                ++g_failures;
                return;
            }
    }

    int bytes;
    std::vector<char> send, recv;
    std::vector<int> counts, displacements;
};

void allgather(int bytes) {
    Blocks b(bytes);
    MPI_Allgather(b.send.data(), bytes, MPI_CHAR, b.recv.data(), bytes, MPI_CHAR, MPI_COMM_WORLD);
    b.check("allgather", false);
}
void allgatherv(int bytes) {
    Blocks b(bytes);
    MPI_Allgatherv(b.send.data(), bytes, MPI_CHAR, b.recv.data(), b.counts.data(), b.displacements.data(),
                   MPI_CHAR, MPI_COMM_WORLD);
    b.check("allgatherv", false);
}
void alltoall(int bytes) {
    Blocks b(bytes);
    MPI_Alltoall(b.send.data(), bytes, MPI_CHAR, b.recv.data(), bytes, MPI_CHAR, MPI_COMM_WORLD);
    b.check("alltoall", true);
}
void alltoallv(Blocks& b, const char* send) {
    MPI_Alltoallv(send, b.counts.data(), b.displacements.data(), MPI_CHAR, b.recv.data(), b.counts.data(),
                  b.displacements.data(), MPI_CHAR, MPI_COMM_WORLD);
    b.check("alltoallv", true);
}
void alltoallv(int bytes) {
    Blocks b(bytes);
    alltoallv(b, b.send.data());
}

void bcast(int bytes) {
    const int root = g_ranks - 1;
    std::vector<char> buffer(static_cast<std::size_t>(bytes), mark(g_rank, 0));
    MPI_Bcast(buffer.data(), bytes, MPI_CHAR, root, MPI_COMM_WORLD);
    if (buffer == std::vector<char>(buffer.size(), mark(root, 0))) return;
    std::fprintf(stderr, "rank %d: bcast of %d bytes is wrong\n", g_rank, bytes);
    ++g_failures;
}
// A block from the first rank to the last, and nothing else.
void lone_block(int bytes) {
    Blocks b(bytes);
    std::vector<int> send(b.counts.size()), receive(b.counts.size());
    if (g_rank == 0) send.back() = bytes;
    if (g_rank == g_ranks - 1) receive.front() = bytes;
    MPI_Alltoallv(b.send.data(), send.data(), b.displacements.data(), MPI_CHAR, b.recv.data(), receive.data(),
                  b.displacements.data(), MPI_CHAR, MPI_COMM_WORLD);
    if (g_rank != g_ranks - 1 || std::vector<char>(b.recv.begin(), b.recv.begin() + bytes) ==
                                     std::vector<char>(static_cast<std::size_t>(bytes), mark(0, g_rank)))
        return;
    std::fprintf(stderr, "the lone block is wrong\n");
    ++g_failures;
}

// A plain form's answer about scratch must not serve a v form, which asks for more blocks.
void mixed() {
    for (int bytes : {20, 100}) {
        allgather(bytes);
        allgatherv(bytes);
        alltoall(bytes);
        alltoallv(bytes);
    }
}

// From memory that mates cannot read, of all kinds.
void outside() {
    static char outside_the_heap[1 << 20];
    for (int bytes : {8, 500, 20'000, 50'000, 8, 120'000}) {
        Blocks b(bytes);
        if (b.send.size() > sizeof outside_the_heap) std::abort();
        std::memcpy(outside_the_heap, b.send.data(), b.send.size());
        for (int i = 0; i < 12; ++i) alltoallv(b, outside_the_heap);
    }
}

// The same, and more than is copied for them, with no room on the heap for a copy.
void refused() {
    static char outside_the_heap[1 << 20];
    Blocks b(50'000);
    if (b.send.size() > sizeof outside_the_heap) std::abort();
    std::memcpy(outside_the_heap, b.send.data(), b.send.size());
    alltoallv(8);
    std::vector<void*> filling;
    for (std::size_t bytes = 1 << 20; bytes >= 16 * 1024; bytes /= 2)
        for (int i = 0; i < 64; ++i) filling.push_back(std::malloc(bytes));
    for (int i = 0; i < 100; ++i) alltoallv(b, outside_the_heap);
    for (void* block : filling) std::free(block);
}

// Blocks that are for MPI, then such that are ours again, as soon as one call has been tried.
void smaller() {
    for (int i = 0; i < 40; ++i) alltoallv(100'000);
    for (int i = 0; i < 100; ++i) alltoallv(8);
    for (int i = 0; i < 40; ++i) alltoallv(100'000);
}

// The second half of the ranks gathers what the first rank has no room for, but its mates have: so it
// receives that elsewhere on the shared heap. Memory for its messages that was made while the heap was full
// is private.
void surplus() {
    constexpr int kBytes = 36'000, kFill = 60'000;
    Blocks b(kBytes);
    alltoallv(8);
    std::vector<void*> filling;
    filling.reserve(kFill);
    {
        Blocks packed(16'000);
        for (int i = 0; i < kFill; ++i)
            filling.push_back(std::malloc(i < kFill / 20 ? 200'000 >> i / 300 : 500));
        alltoallv(packed, packed.send.data());
    }
    for (void* block : filling) std::free(block);
    const bool sends = g_rank >= g_ranks / 2, lacks_room = g_rank == 0;
    std::vector<int> counts(b.counts.size());
    for (int r = g_ranks / 2; r < g_ranks; ++r) counts[static_cast<std::size_t>(r)] = lacks_room ? 8 : kBytes;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int code = MPI_Allgatherv(b.send.data(), sends ? kBytes : 0, MPI_CHAR, b.recv.data(), counts.data(),
                                    b.displacements.data(), MPI_CHAR, MPI_COMM_WORLD);
    int error_class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
    if (error_class != (lacks_room ? MPI_ERR_TRUNCATE : MPI_SUCCESS)) ++g_failures;
    for (int r = g_ranks / 2; !lacks_room && r < g_ranks; ++r)
        if (b.recv[static_cast<std::size_t>(r) * kBytes + kBytes - 1] != mark(r, 0)) ++g_failures;
}

// Blocks that neighbours on a node cannot read come by messages: two from each rank in each call that is
// ours.
void private_ring() {
    constexpr int kBytes = 300'000, kCalls = 10;
    static char sent[2 * kBytes], came[2 * kBytes];
    const int periodic = 1;
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &g_ranks, &periodic, 0, &ring);
    test::open_comm(ring);
    std::memset(sent, mark(g_rank, 0), sizeof sent);
    for (int i = 0; i < kCalls; ++i)
        MPI_Neighbor_alltoall(sent, kBytes, MPI_CHAR, came, kBytes, MPI_CHAR, ring);
    const int before = (g_rank + g_ranks - 1) % g_ranks, behind = (g_rank + 1) % g_ranks;
    if (came[kBytes - 1] != mark(before, 0) || came[2 * kBytes - 1] != mark(behind, 0)) ++g_failures;
    MPI_Comm_free(&ring);
}

void counted(int bytes) {
    using Form = void (*)(int);
    for (Form call : {Form{allgather}, Form{allgatherv}, Form{alltoall}, Form{alltoallv}, Form{bcast}})
        for (int times = 0; times < 2; ++times) call(bytes);
}

// The blocks of a rank in a graph in which the ranks below `split` send to all others.
class TwoSides {
  public:
    TwoSides(int split, int bytes)
        : blocks_(bytes),
          out_(g_rank < split ? g_ranks - split : 0),
          in_(g_rank < split ? 0 : split),
          split_(split) {
        std::vector<int> peers;
        for (int i = 0; i < out_ + in_; ++i) peers.push_back(out_ != 0 ? split + i : i);
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in_, peers.data(), MPI_UNWEIGHTED, out_, peers.data(),
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm_);
    }
    ~TwoSides() { MPI_Comm_free(&comm_); }
    TwoSides(const TwoSides&) = delete;
    TwoSides& operator=(const TwoSides&) = delete;

    // The first two are the library's.
    void run() {
        for (int times = 0; times < 4; ++times) gather(times % 2 != 0);
        gather(false);
        gather(true);
        for (int times = 0; times < 4; ++times) exchange(times % 2 != 0);
    }

  private:
    void gather(bool sized) {
        Blocks& b = blocks_;
        if (sized)
            MPI_Neighbor_allgatherv(b.send.data(), b.bytes, MPI_CHAR, b.recv.data(), b.counts.data(),
                                    b.displacements.data(), MPI_CHAR, comm_);
        else
            MPI_Neighbor_allgather(b.send.data(), b.bytes, MPI_CHAR, b.recv.data(), b.bytes, MPI_CHAR, comm_);
        check(0);
    }
    void exchange(bool sized) {
        Blocks& b = blocks_;
        if (sized)
            MPI_Neighbor_alltoallv(b.send.data(), b.counts.data(), b.displacements.data(), MPI_CHAR,
                                   b.recv.data(), b.counts.data(), b.displacements.data(), MPI_CHAR, comm_);
        else
            MPI_Neighbor_alltoall(b.send.data(), b.bytes, MPI_CHAR, b.recv.data(), b.bytes, MPI_CHAR, comm_);
        check(g_rank - split_);
    }
    void check(int block) {
        Blocks& b = blocks_;
        for (int i = 0; i < in_ * b.bytes; ++i)
            g_failures += b.recv[static_cast<std::size_t>(i)] != mark(i / b.bytes, block);
        b.recv.assign(b.recv.size(), 0);
    }

    Blocks blocks_;
    int out_, in_, split_;
    MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
    const std::string what = argc > 1 ? argv[1] : "mixed";
    if (what == "mixed") mixed();
    if (what == "rests") alltoallv(16000);
    if (what == "outside") outside();
    if (what == "refused") refused();
    if (what == "smaller") smaller();
    if (what == "surplus") surplus();
    if (what == "private_ring") private_ring();
    for (int i = 2; what == "counted" && i < argc; ++i) counted(std::atoi(argv[i]));
    if (what == "counted") lone_block(3000);
    for (int i = 3; what == "neighbors" && i < argc; ++i)
        TwoSides(std::atoi(argv[2]), std::atoi(argv[i])).run();
    MPI_Finalize();
    return g_failures != 0;
}
