// SPDX-License-Identifier: BSD-3-Clause
//
// Wrong programs in which two ranks disagree on the length of a block. A receiver with less room than is sent
// gets what fits and MPI_ERR_TRUNCATE through the communicator's error handler, and not a byte behind its
// room is touched; one with more room gets what there is, and of a bcast what MPICH says to that. The others
// see nothing of it, and the communicator can be used on.
//
//   truncate_test            both, in every form that takes sizes of its own
//   truncate_test exchanges  the same, without bcast
//   truncate_test neighbors  the same among neighbours, where all ranks are
//   truncate_test mate       bcast where the last rank errs: over several nodes, where it follows its leader
//   truncate_test bcast      one in which all but the root and its node err: the job must end with an error
//   truncate_test unequal    plain blocks of other sizes on one rank: the job must end with a line
//   truncate_test other      after a call of both, an alltoall in which one rank calls allgather: likewise
//   truncate_test lopsided   one rank that receives more than it sends: likewise
//   truncate_test all_lopsided   every rank does so: as the MPI library has it
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "call.h"
#include "support/open_comm.h"
#include "support/refused.h"

namespace {

using namespace test;

int handled = 0;
void handler(MPI_Comm*, int*, ...) { ++handled; }

constexpr int kUntouched = 0x5A5A5A5A;
constexpr int kGuardInts = 64;
// Of a block; in exchanges with two kinds of room, as they take most of the time.
constexpr int kMostInts = 300'000;

// Ints that lie `stride` ints apart, in blocks between guards.
class Ints {
  public:
    Ints(Placement at, const std::vector<int>& counts, int stride)
        : counts_(counts), stride_(stride), region_(at, bytes_of(counts, stride)) {
        std::fill_n(data(), region_.bytes() / sizeof(int), kUntouched);
        int next = kGuardInts;
        for (int count : counts_) {
            begins_.push_back(next);
            next += count * stride + kGuardInts;
        }
    }
    int* data() const { return reinterpret_cast<int*>(region_.data()); }
    int& at(int block, int i) const { return data()[begins_[static_cast<std::size_t>(block)] + i * stride_]; }
    // In strides, from data(): blocks begin on even ints.
    std::vector<int> displacements(bool in_bytes) const {
        std::vector<int> result;
        for (int begin : begins_)
            result.push_back(in_bytes ? begin * static_cast<int>(sizeof(int)) : begin / stride_);
        return result;
    }
    const std::vector<int>& counts() const { return counts_; }
    // Counts upwards in a block.
    void count_from(int block, int first) {
        int* const ints = &at(block, 0);
        for (int i = 0; i < counts_[static_cast<std::size_t>(block)]; ++i) ints[i * stride_] = first + i;
    }
    // How many of a block's first ints do not count upwards so.
    int wrong_ints(int block, int first, int count) const {
        const int* const ints = &at(block, 0);
        int wrong = 0;
        if (stride_ == 1)  // a loop that compilers vectorise
            for (int i = 0; i < count; ++i) wrong += ints[i] != first + i;
        else
            for (int i = 0; i < count; ++i) wrong += ints[i * stride_] != first + i;
        return wrong;
    }
    int untouched() const {
        return static_cast<int>(std::count(data(), data() + region_.bytes() / sizeof(int), kUntouched));
    }
    int all() const { return static_cast<int>(region_.bytes() / sizeof(int)); }

  private:
    static std::size_t bytes_of(const std::vector<int>& counts, int stride) {
        std::size_t ints = kGuardInts;
        for (int count : counts) ints += static_cast<std::size_t>(count * stride + kGuardInts);
        return ints * sizeof(int);
    }
    std::vector<int> counts_, begins_;
    int stride_;
    Region region_;
};

struct Case {
    Kind kind;
    int ints;         // of a block, on ranks that agree
    int victim_ints;  // what the victims have room for
    int victim;       // a rank, or -1: all (of a bcast: but the root)
    int stride;       // of the receiver's ints
    Placement at;

    std::string text() const {
        return std::string(name_of(kind)) + " of " + std::to_string(ints) + " ints, victim " +
               std::to_string(victim) + " with room for " + std::to_string(victim_ints) + ", stride " +
               std::to_string(stride) + ", place " + std::to_string(static_cast<int>(at));
    }
};

MPI_Datatype spread;                 // an int in the room of two
MPI_Comm neighbors = MPI_COMM_NULL;  // all are each other's, in order; null: not among neighbours

// The block that rank `source` sends to rank `target`; every third is shorter.
int sent_ints(const Case& c, int source, int target) {
    if (c.kind == Kind::bcast) return source == 0 ? c.ints : 0;
    if (c.kind == Kind::allgatherv) target = 0;
    return (source + target) % 3 == 2 ? c.ints / 2 : c.ints;
}

int first_value(int source, int target) { return source * 1'000'003 + target * 10'007; }

bool is_victim(const Case& c) {
    return c.victim == world_rank() || (c.victim < 0 && (c.kind != Kind::bcast || world_rank() != 0));
}

// How much this rank says it can receive from `source`: victims err about every other peer, or only about
// themselves.
bool about_themselves = false;
int room_ints(const Case& c, int source) {
    const bool other =
        source != world_rank() && (c.kind == Kind::bcast || source % 2 == 0 || world_size() == 2);
    const bool errs = is_victim(c) && (about_themselves ? source == world_rank() : other);
    return errs ? c.victim_ints : sent_ints(c, source, world_rank());
}

MPI_Comm comm() { return neighbors != MPI_COMM_NULL ? neighbors : MPI_COMM_WORLD; }

MPI_Comm all_as_neighbors() {
    std::vector<int> all;
    for (int r = 0; r < world_size(); ++r) all.push_back(r);
    MPI_Comm made;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, world_size(), all.data(), MPI_UNWEIGHTED, world_size(),
                                   all.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
    return made;
}

int call(const Case& c, const Ints& from, const Ints& to) {
    MPI_Datatype type = c.stride == 1 ? MPI_INT : spread;
    if (c.kind == Kind::bcast)
        return MPI_Bcast(&to.at(0, 0), to.counts()[0], world_rank() == 0 ? MPI_INT : type, 0, MPI_COMM_WORLD);
    const bool near = neighbors != MPI_COMM_NULL;
    if (c.kind == Kind::allgatherv) {
        auto places = to.displacements(false);
        return (near ? MPI_Neighbor_allgatherv : MPI_Allgatherv)(&from.at(0, 0), from.counts()[0], MPI_INT,
                                                                 to.data(), to.counts().data(), places.data(),
                                                                 type, comm());
    }
    bool w = c.kind == Kind::alltoallw;
    auto sends = from.displacements(w), receives = to.displacements(w);
    if (!w)
        return (near ? MPI_Neighbor_alltoallv : MPI_Alltoallv)(
            from.data(), from.counts().data(), sends.data(), MPI_INT, to.data(), to.counts().data(),
            receives.data(), type, comm());
    std::vector<MPI_Datatype> ints(sends.size(), MPI_INT), types(sends.size(), type);
    if (near) {
        const std::vector<MPI_Aint> send_places(sends.begin(), sends.end()),
            recv_places(receives.begin(), receives.end());
        return MPI_Neighbor_alltoallw(from.data(), from.counts().data(), send_places.data(), ints.data(),
                                      to.data(), to.counts().data(), recv_places.data(), types.data(),
                                      comm());
    }
    return MPI_Alltoallw(from.data(), from.counts().data(), sends.data(), ints.data(), to.data(),
                         to.counts().data(), receives.data(), types.data(), MPI_COMM_WORLD);
}

std::vector<int> counts_of(const Case& c, bool send) {
    std::vector<int> counts;
    if (c.kind == Kind::bcast) return {world_rank() == 0 ? c.ints : room_ints(c, 0)};
    for (int r = 0; r < world_size(); ++r)
        counts.push_back(send ? sent_ints(c, world_rank(), r) : room_ints(c, r));
    if (send && c.kind == Kind::allgatherv) counts.resize(1);
    return counts;
}

// MPICH, and libcoco with it, reports a bcast that brings less than there is room for.
#ifdef OPEN_MPI
constexpr int kLacking = MPI_SUCCESS;
#else
constexpr int kLacking = MPI_ERR_OTHER;
#endif

// Checks what has come: prefixes of what was sent, and nothing else changed. Returns: the error class that
// the rank must have heard.
int check_received(const Case& c, const Ints& to) {
    const int me = world_rank(), blocks = static_cast<int>(to.counts().size());
    bool truncated = false, lacking = false;
    int touched = 0, wrong = 0;
    for (int source = 0; source < blocks; ++source) {
        int sent = sent_ints(c, source, me),
            come = std::min(sent, to.counts()[static_cast<std::size_t>(source)]);
        truncated |= come < sent;
        lacking |= c.kind == Kind::bcast && come < to.counts()[static_cast<std::size_t>(source)];
        touched += come;
        int told = c.kind == Kind::alltoallv || c.kind == Kind::alltoallw ? me : 0;
        wrong += to.wrong_ints(source, first_value(source, told), come);
    }
    CHECK_SAYING(wrong == 0, (c.text() + ": " + std::to_string(wrong) + " wrong ints").c_str());
    CHECK_SAYING(to.untouched() == to.all() - touched,
                 (c.text() + ": " + std::to_string(to.all() - touched - to.untouched()) +
                  " ints written that are not ours")
                     .c_str());
    return truncated ? MPI_ERR_TRUNCATE : lacking ? kLacking : MPI_SUCCESS;
}

void check(const Case& c) {
    const bool root = c.kind == Kind::bcast && world_rank() == 0;
    Ints from(c.at, counts_of(c, true), 1), to(c.at, counts_of(c, false), root ? 1 : c.stride);
    for (int target = 0; target < static_cast<int>(from.counts().size()); ++target)
        from.count_from(target, first_value(world_rank(), target));
    if (root) to.count_from(0, first_value(0, 0));
    MPI_Barrier(MPI_COMM_WORLD);
    int before = handled, got = class_of(call(c, from, to));
    const int wanted = check_received(c, to);
    CHECK_SAYING(got == wanted, (c.text() + ": error class " + std::to_string(got)).c_str());
    CHECK_SAYING(handled - before == (wanted != MPI_SUCCESS ? 1 : 0),
                 (c.text() + ": the handler was not called once").c_str());
}

bool over_nodes() {
    const char* topology = std::getenv("COCO_TOPOLOGY");
    return topology != nullptr && std::strncmp(topology, "nodes=1,", 8) != 0;
}

void check_all(const std::vector<Kind>& kinds, const std::vector<int>& victims, bool empty_too = true) {
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread);
    MPI_Type_commit(&spread);
    MPI_Errhandler counting;
    MPI_Comm_create_errhandler(handler, &counting);
    MPI_Comm_set_errhandler(comm(), counting);
    for (Kind kind : kinds)
        for (int ints : {2, 100, 1500, 3000, 40'000, kMostInts})
            for (int room : {0, ints / 2, ints - 1, ints + 1, 3 * ints})
                for (int victim : victims)
                    for (int stride : {1, 2})
                        for (Placement at : {Placement::heap, Placement::mapped}) {
                            // The MPI library serves large exchanges with gaps and, over several nodes, with
                            // private buffers; neighbours' private buffers go as messages, whose errors end
                            // the job.
                            bool large = static_cast<std::size_t>(ints) * 6 * sizeof(int) *
                                             static_cast<std::size_t>(world_size()) >
                                         100'000;
                            if (room == 0 && !empty_too) continue;
                            const bool is_usual = room == ints / 2 || room == ints + 1;
                            if (ints == kMostInts && kind != Kind::bcast && !is_usual) continue;
                            const bool left = stride != 1 || (at != Placement::heap &&
                                                              (over_nodes() || neighbors != MPI_COMM_NULL));
                            if (kind != Kind::bcast && large && left) continue;
                            check({kind, ints, room, victim, stride, at});
                        }
    MPI_Comm_set_errhandler(comm(), MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&counting);
    MPI_Type_free(&spread);
    warm_up(MPI_COMM_WORLD);
}

// Between nodes nobody can say how much is received: some messages of such bcasts would stay under way.
void bcast(int root_ints, int other_ints) {
    std::vector<int> buffer(static_cast<std::size_t>(std::max(root_ints, other_ints)));
    const int half = world_size() / 2;
    for (int i = 0; i < 3; ++i)
        MPI_Bcast(buffer.data(), world_rank() < half ? root_ints : other_ints, MPI_INT, 0, MPI_COMM_WORLD);
}

// Plain blocks: what each rank sends and receives, in ints.
void exchange(int send, int recv) {
    std::vector<int> from(static_cast<std::size_t>(send * world_size()), world_rank()),
        to(static_cast<std::size_t>(recv * world_size()), -1);
    int code = MPI_Alltoall(from.data(), send, MPI_INT, to.data(), recv, MPI_INT, MPI_COMM_WORLD);
    CHECK(code == MPI_SUCCESS);
    for (int r = 0; r < world_size(); ++r)
        for (int i = 0; i < recv; ++i)
            CHECK(to[static_cast<std::size_t>(r * recv + i)] == (i < send ? r : -1));
}

// Equal blocks in unlike collectives.
void unlike(int ints, bool gathers) {
    const std::size_t total = static_cast<std::size_t>(ints * world_size());
    std::vector<int> from(total), to(total);
    if (gathers)
        MPI_Allgather(from.data(), ints, MPI_INT, to.data(), ints, MPI_INT, MPI_COMM_WORLD);
    else
        MPI_Alltoall(from.data(), ints, MPI_INT, to.data(), ints, MPI_INT, MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    warm_up(MPI_COMM_WORLD);
    const std::string mode = argc > 1 ? argv[1] : "";
    const bool last = world_rank() == world_size() - 1;
    const int ints = argc > 2 ? std::atoi(argv[2]) : 2;
    const std::vector<Kind> exchanges{Kind::alltoallv, Kind::alltoallw, Kind::allgatherv};
    const std::vector<int> victims{-1, world_size() - 1};
    if (mode.empty()) check_all({Kind::bcast}, victims);
    if (mode.empty() || mode == "exchanges") check_all(exchanges, victims);
    if (mode == "neighbors") {
        neighbors = all_as_neighbors();
        warm_up(neighbors);
        check_all(exchanges, victims);
        about_themselves = true;
        check_all(exchanges, victims);
        MPI_Comm_free(&neighbors);
    }
    // To receive nothing is to stay out.
    if (mode == "mate") check_all({Kind::bcast}, {world_size() - 1}, false);
    if (mode == "bcast") bcast(ints, argc > 3 ? std::atoi(argv[3]) : 1);
    if (mode == "unequal") exchange(last ? 2 * ints : ints, last ? 2 * ints : ints);
    if (mode == "other")
        for (const bool gathers : {false, true, last}) unlike(ints, gathers);  // the last call is wrong
    if (mode == "lopsided") exchange(ints, last ? 2 * ints : ints);
    if (mode == "all_lopsided") exchange(ints, 2 * ints);
    const int verdict = finish("truncate");
    MPI_Finalize();
    return verdict;
}
