// SPDX-License-Identifier: BSD-3-Clause
//
// Neighbourhood collectives with a request (nonblocking, and persistent where the MPI library has them) are
// the library's own. Here they are under way while blocking ones run on the same communicator and on others:
// ranks of odd numbers complete them first, the others after, so that who waits in a blocking call has to
// keep the requests moving.
#include <mpi.h>
#if MPI_VERSION < 4
#include <mpi-ext.h>  // Open MPI's persistent collectives
#endif

#include <array>
#include <functional>
#include <vector>

#include "support/check.h"
#include "support/open_comm.h"

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define PERSISTENT(name) MPI_##name
#else
#define PERSISTENT(name) MPIX_##name
#endif

namespace {

using namespace test;

constexpr int kStarts = 10;

// Everybody sends to the two behind it and hears from the two before it; where ranks are few, to itself too.
class Graph {
  public:
    explicit Graph(int ints) : ints_(ints), sent_(ints_of(kDegree)), received_(sent_.size()) {
        for (int i = 0; i < kDegree; ++i) {
            from_[at(i)] = (rank_ + (i + 1) * (size_ - 1)) % size_;
            to_[at(i)] = (rank_ + i + 1) % size_;
            displacements_[at(i)] = i * ints;
            byte_displacements_[at(i)] = i * ints * static_cast<MPI_Aint>(sizeof(int));
        }
        counts_.fill(ints);
        types_.fill(MPI_INT);
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, kDegree, from_.data(), MPI_UNWEIGHTED, kDegree,
                                       to_.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm_);
        test::open_comm(comm_);
    }
    ~Graph() { MPI_Comm_free(&comm_); }
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    enum Form { alltoall, alltoallv, alltoallw, allgather, allgatherv, kForms };

    MPI_Request start(Form form) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int* s = sent_.data();
        int* r = received_.data();
        if (form == alltoall) MPI_Ineighbor_alltoall(s, ints_, MPI_INT, r, ints_, MPI_INT, comm_, &request);
        if (form == alltoallv)
            MPI_Ineighbor_alltoallv(s, counts_.data(), displacements_.data(), MPI_INT, r, counts_.data(),
                                    displacements_.data(), MPI_INT, comm_, &request);
        if (form == alltoallw)
            MPI_Ineighbor_alltoallw(s, counts_.data(), byte_displacements_.data(), types_.data(), r,
                                    counts_.data(), byte_displacements_.data(), types_.data(), comm_,
                                    &request);
        if (form == allgather) MPI_Ineighbor_allgather(s, ints_, MPI_INT, r, ints_, MPI_INT, comm_, &request);
        if (form == allgatherv)
            MPI_Ineighbor_allgatherv(s, ints_, MPI_INT, r, counts_.data(), displacements_.data(), MPI_INT,
                                     comm_, &request);
        return request;
    }
    MPI_Request prepare(Form form) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int* s = sent_.data();
        int* r = received_.data();
        if (form == alltoall) PERSISTENT(Neighbor_alltoall_init)
        (s, ints_, MPI_INT, r, ints_, MPI_INT, comm_, MPI_INFO_NULL, &request);
        if (form == alltoallv) PERSISTENT(Neighbor_alltoallv_init)
        (s, counts_.data(), displacements_.data(), MPI_INT, r, counts_.data(), displacements_.data(), MPI_INT,
         comm_, MPI_INFO_NULL, &request);
        if (form == alltoallw) PERSISTENT(Neighbor_alltoallw_init)
        (s, counts_.data(), byte_displacements_.data(), types_.data(), r, counts_.data(),
         byte_displacements_.data(), types_.data(), comm_, MPI_INFO_NULL, &request);
        if (form == allgather) PERSISTENT(Neighbor_allgather_init)
        (s, ints_, MPI_INT, r, ints_, MPI_INT, comm_, MPI_INFO_NULL, &request);
        if (form == allgatherv) PERSISTENT(Neighbor_allgatherv_init)
        (s, ints_, MPI_INT, r, counts_.data(), displacements_.data(), MPI_INT, comm_, MPI_INFO_NULL,
         &request);
        return request;
    }

    void fill(Form form, int turn) {
        for (int i = 0; i < kDegree; ++i)
            for (int j = 0; j < ints_; ++j)
                sent_[at(i * ints_ + j)] =
                    value(rank_, is_gather(form) ? 0 : to_[at(i)], is_gather(form) ? 0 : i, turn);
        received_.assign(received_.size(), -1);
    }
    void check(Form form, int turn) const {
        for (int i = 0; i < kDegree; ++i)
            for (int j = 0; j < ints_; ++j) {
                const bool gather = is_gather(form);
                const int wanted = value(from_[at(i)], gather ? 0 : rank_, gather ? 0 : i, turn);
                if (received_[at(i * ints_ + j)] != wanted)
                    return CHECK_SAYING(false, "a request brought wrong data");
            }
    }
    // The blocking form, in buffers of its own.
    void block(int turn) const {
        std::vector<int> sent(sent_.size()), received(sent_.size(), -1);
        for (std::size_t i = 0; i < sent.size(); ++i)
            sent[i] = value(rank_, 77, static_cast<int>(i) / ints_, turn);
        MPI_Neighbor_alltoall(sent.data(), ints_, MPI_INT, received.data(), ints_, MPI_INT, comm_);
        for (std::size_t i = 0; i < received.size(); ++i) {
            const int block = static_cast<int>(i) / ints_;
            if (received[i] != value(from_[at(block)], 77, block, turn))
                return CHECK_SAYING(false, "wrong data beside a request");
        }
    }

  private:
    static constexpr int kDegree = 2;
    static std::size_t at(int i) { return static_cast<std::size_t>(i); }
    static bool is_gather(Form form) { return form == allgather || form == allgatherv; }
    static int value(int from, int to, int block, int turn) {
        return ((from * 131 + to) * 7 + block) * 1009 + turn;
    }
    std::size_t ints_of(int blocks) const { return at(blocks * ints_); }

    const int rank_ = world_rank(), size_ = world_size(), ints_;
    std::array<int, kDegree> from_{}, to_{}, counts_{}, displacements_{};
    std::array<MPI_Aint, kDegree> byte_displacements_{};
    std::array<MPI_Datatype, kDegree> types_{};
    std::vector<int> sent_, received_;
    MPI_Comm comm_ = MPI_COMM_NULL;
};

void exchange_in_world(int turn) {
    std::vector<int> sent(static_cast<std::size_t>(world_size())), received(sent.size(), -1);
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = world_rank() * 100 + static_cast<int>(i) + turn;
    MPI_Alltoall(sent.data(), 1, MPI_INT, received.data(), 1, MPI_INT, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < received.size(); ++i)
        CHECK(received[i] == static_cast<int>(i) * 100 + world_rank() + turn);
}

// started: the request is under way.
void complete_among_blocking(Graph& graph, Graph::Form form, int turn, MPI_Request& request) {
    const bool first = world_rank() % 2 == 1;
    if (first) MPI_Wait(&request, MPI_STATUS_IGNORE);
    graph.block(turn);
    exchange_in_world(turn);
    if (!first) MPI_Wait(&request, MPI_STATUS_IGNORE);
    graph.check(form, turn);
}

void run(Graph& graph, Graph::Form form) {
    for (int turn = 0; turn < kStarts; ++turn) {
        graph.fill(form, turn);
        MPI_Request request = graph.start(form);
        complete_among_blocking(graph, form, turn, request);
    }
    MPI_Request request = graph.prepare(form);
    for (int turn = 0; turn < kStarts; ++turn) {
        graph.fill(form, turn);
        MPI_Start(&request);
        complete_among_blocking(graph, form, turn, request);
    }
    MPI_Request_free(&request);
}

// A communicator that is being made meanwhile, of which rank 0 hears first, while calls on another, new, are
// the first of their kind. Open MPI makes one communicator at a time.
void duplicate_among_blocking(int ints) {
    MPI_Comm others, made;
    MPI_Comm_dup(MPI_COMM_WORLD, &others);  // the older one, whose duplicate goes first
    Graph graph(ints);
    for (int turn = 0; turn < 6; ++turn) {
        MPI_Request request;
        if (world_rank() == 0) MPI_Comm_idup(others, &made, &request);
        graph.block(turn);
        if (world_rank() != 0) MPI_Comm_idup(others, &made, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&made);
    }
    MPI_Comm_free(&others);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    for (int ints : {1, 500, 50'000}) {
        Graph graph(ints);
        for (int form = 0; form < Graph::kForms; ++form) run(graph, static_cast<Graph::Form>(form));
    }
    duplicate_among_blocking(500);
    int status = finish("requests_test");
    MPI_Finalize();
    return status;
}
