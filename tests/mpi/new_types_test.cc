// SPDX-License-Identifier: BSD-3-Clause
//
// Types that are made for one call, or for a few, and freed behind it, as BLACS makes them, or behind the
// next one's calls: the next one often has the same handle, and another layout. Each rank has types of its
// own over the same ints; some lie backwards, some with holes, some as one run. Each int that arrives is
// compared, and each that must stay.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "support/check.h"
#include "types.h"

namespace {

using namespace test;

constexpr int kUntouched = 0x5A5A5A5A;

// One element: the places of its ints, in the order of the signature, and its extent, both in ints.
struct Laid {
    MPI_Datatype handle;
    bool is_ours;  // to be freed
    std::vector<int> places;
    int extent;
};

std::vector<int> places_in_steps(int count, int step) {
    std::vector<int> places;
    for (int i = 0; i < count; ++i) places.push_back(i * step);
    return places;
}

MPI_Datatype made_of(MPI_Datatype old, MPI_Datatype made) {
    MPI_Type_free(&old);
    return made;
}

MPI_Datatype hvector(int count, MPI_Aint stride_bytes) {
    MPI_Datatype type;
    MPI_Type_create_hvector(count, 1, stride_bytes, MPI_INT, &type);
    return commit(type);
}

MPI_Datatype duplicate_of(MPI_Datatype old) {
    MPI_Datatype type;
    MPI_Type_dup(old, &type);
    return made_of(old, commit(type));
}

// A darray of one process: one run, which cannot be told from how it was made.
MPI_Datatype whole_array(int ints) {
    const int sizes[] = {2, ints / 2}, distributions[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK},
              arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, processes[] = {1, 1};
    MPI_Datatype type;
    MPI_Type_create_darray(1, 0, 2, sizes, distributions, arguments, processes, MPI_ORDER_C, MPI_INT, &type);
    return commit(type);
}

// Of `ints` ints, an even number, in one element.
Laid make_type(int which, int ints) {
    const std::vector<int> run = places_in_steps(ints, 1);
    std::vector<int> reversed(run.rbegin(), run.rend()), pairs;
    for (int i = 0; i < ints / 2; ++i) pairs.insert(pairs.end(), {4 * i, 4 * i + 3});
    switch (which) {
        case 0:
            return {contiguous(ints, MPI_INT), true, run, ints};
        case 1:
            return {vector(ints, 1, 1, MPI_INT), true, run, ints};
        case 2:
            return {vector(ints, 1, 2, MPI_INT), true, places_in_steps(ints, 2), 2 * ints - 1};
        case 3:
            return {vector(ints, 1, -1, MPI_INT), true, places_in_steps(ints, -1), ints};
        case 4:
            return {vector(1, ints, 3 * ints, MPI_INT), true, run, ints};
        case 5:
            return {hvector(ints, 3 * sizeof(int)), true, places_in_steps(ints, 3), 3 * ints - 2};
        case 6:
            return {hvector(ints, -2 * MPI_Aint{sizeof(int)}), true, places_in_steps(ints, -2), 2 * ints - 1};
        case 7:
            return {indexed(std::vector<int>(run.size(), 1), reversed, MPI_INT), true, reversed, ints};
        case 8: {
            MPI_Datatype pair = vector(2, 1, 3, MPI_INT);
            return {made_of(pair, contiguous(ints / 2, pair)), true, pairs, 2 * ints};
        }
        case 9: {
            MPI_Datatype backwards = vector(ints, 1, -1, MPI_INT);
            return {made_of(backwards, contiguous(1, backwards)), true, places_in_steps(ints, -1), ints};
        }
        case 10: {
            MPI_Datatype dense = contiguous(ints, MPI_INT);
            return {made_of(dense, resized(dense, 0, (ints + 2) * MPI_Aint{sizeof(int)})), true, run,
                    ints + 2};
        }
        case 11:
            return {duplicate_of(vector(2, ints / 2, ints, MPI_INT)), true,
                    [&] {
                        std::vector<int> places = run;
                        for (int i = ints / 2; i < ints; ++i) places[static_cast<std::size_t>(i)] += ints / 2;
                        return places;
                    }(),
                    ints + ints / 2};
        case 12:
            return {whole_array(ints), true, run, ints};
        default:
            return {MPI_INT, false, {0}, 1};
    }
}
constexpr int kTypes = 14;

// A type of this rank's for `ints` ints, and how many elements of it they are.
struct Drawn {
    Laid type;
    int count;
};

Drawn draw_type(std::mt19937& draw, int ints) {
    const int which = static_cast<int>(draw() % kTypes);
    int of_element = ints;
    for (const int part : {2, 3})
        if (draw() % 2 == 0 && ints % (2 * part) == 0) of_element = ints / part;
    Drawn drawn{make_type(which, of_element), ints / of_element};
    if (!drawn.type.is_ours) drawn.count = ints;
    return drawn;
}

// Blocks of such elements behind one another, with room on both sides.
class Memory {
  public:
    Memory(const Drawn& of, int blocks)
        : of_(of),
          room_(of.count * of.type.extent + kLeastRoom),
          data_(static_cast<std::size_t>(blocks * of.count * of.type.extent + 2 * room_), kUntouched) {}
    int* at() { return data_.data() + room_; }
    template <class Value>
    void fill(int block, Value value) {
        each(block, [&](int& one, int i) { one = value(i); });
    }
    // What is compared does not count as touched any more.
    template <class Value>
    void take(int block, Value value) {
        bool is_right = true;
        each(block, [&](int& one, int i) {
            is_right = is_right && one == value(i);
            one = kUntouched;
        });
        CHECK(is_right);
    }
    void check_untouched() const {
        // Each int is like the one behind it.
        CHECK(data_.front() == kUntouched &&
              std::memcmp(data_.data(), data_.data() + 1, (data_.size() - 1) * sizeof(int)) == 0);
    }

  private:
    static constexpr int kLeastRoom = 1024;
    template <class Act>
    void each(int block, Act act) {
        int i = 0;
        for (int e = block * of_.count; e < (block + 1) * of_.count; ++e)
            for (const int place : of_.type.places) act(at()[e * of_.type.extent + place], i++);
    }
    const Drawn& of_;
    const int room_;  // a block's on both sides, and more
    std::vector<int> data_;
};

int value_of(int call, int from, int to, int i) { return ((call % 64 * 8 + from) * 8 + to) * 65'536 + i; }

void bcast(const Drawn& of, int root, int call, MPI_Comm comm) {
    Memory data(of, 1);
    auto value = [&](int i) { return value_of(call, root, 0, i); };
    if (world_rank() == root) data.fill(0, value);
    MPI_Bcast(data.at(), of.count, of.type.handle, root, comm);
    data.take(0, value);
    data.check_untouched();
}

void exchange(const Drawn& sent, const Drawn& received, bool is_personal, int call, MPI_Comm comm) {
    Memory send(sent, is_personal ? world_size() : 1), recv(received, world_size());
    for (int to = 0; to < (is_personal ? world_size() : 1); ++to)
        send.fill(to, [&](int i) { return value_of(call, world_rank(), to, i); });
    (is_personal ? MPI_Alltoall : MPI_Allgather)(send.at(), sent.count, sent.type.handle, recv.at(),
                                                 received.count, received.type.handle, comm);
    for (int from = 0; from < world_size(); ++from)
        recv.take(from, [&](int i) { return value_of(call, from, is_personal ? world_rank() : 0, i); });
    recv.check_untouched();
}

void free_types(std::vector<Drawn>& types) {
    for (Drawn& drawn : types)
        if (drawn.type.is_ours) MPI_Type_free(&drawn.type.handle);
    types.clear();
}

void call_with_new_types(int calls) {
    constexpr int kInts[] = {2, 4, 6, 12, 12, 60, 240, 300, 600, 6000, 8196, 24'000};
    // Larger ones are alike on all ranks: Open MPI 4.1 cuts its bcasts into pieces by local types.
    constexpr int kMostUnlike = 600;
    std::mt19937 draw(11), own(static_cast<unsigned>(100 + world_rank()));
    MPI_Comm comms[] = {MPI_COMM_WORLD, MPI_COMM_NULL};
    std::vector<Drawn> older, kept;  // to be freed behind the next calls, and behind those after them
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    for (int call = 0; call < calls; ++call) {
        const int kind = static_cast<int>(draw() % 8);
        const bool is_bcast = kind < 6;
        int ints = kInts[draw() % std::size(kInts)];
        // Open MPI 4.1 goes wrong in exchanges of more from one of these types to another.
        if (!is_bcast) ints = std::min(ints, kMostUnlike);
        const int root = static_cast<int>(draw() % static_cast<unsigned>(world_size()));
        MPI_Comm comm = comms[draw() % 2];
        std::mt19937& which = ints > kMostUnlike ? draw : own;
        Drawn sent = draw_type(which, ints), received = draw_type(which, ints);
        for (unsigned again = draw() % 3; again < 3; ++again) {
            if (is_bcast)
                bcast(sent, root, call, comm);
            else
                exchange(sent, received, kind == 6, call, comm);
        }
        free_types(older);
        older = std::move(kept);
        kept.clear();
        (draw() % 2 == 0 ? older : kept) = {sent, received};
    }
    free_types(older);
    free_types(kept);
    MPI_Comm_free(&comms[1]);
}

// The first exchanges of a communicator weigh by their sizes, until it is set up: at the same call on all
// ranks, though half of them free a type behind the next one's call, so that their handles do not come back
// when the others' do.
void call_on_new_communicators() {
    constexpr int kInts = 2, kManyInts = 8196;
    std::mt19937 draw(12);
    for (int made = 0; made < 60; ++made) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        std::vector<Drawn> older;
        const int large_call = static_cast<int>(draw() % 40);
        for (int call = 0; call < large_call + 3; ++call) {
            std::vector<Drawn> now = {{make_type(0, call == large_call ? kManyInts : kInts), 1}};
            exchange(now.front(), now.front(), true, call, comm);
            free_types(older);
            if (world_rank() % 2 == 0)
                older = std::move(now);
            else
                free_types(now);
        }
        free_types(older);
        MPI_Comm_free(&comm);
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    call_with_new_types(argc > 1 ? 700 : 2000);
    call_on_new_communicators();
    const int verdict = finish("new types");
    MPI_Finalize();
    return verdict;
}
