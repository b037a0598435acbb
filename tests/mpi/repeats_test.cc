// SPDX-License-Identifier: BSD-3-Clause
//
// Calls that are like earlier ones but for their counts, communicators, types and roots, in an order drawn by
// chance: what is remembered of a call must serve the next one that is like it, and no other. Each rank has
// two threads that take turns, on each rank in another order, so that ranks remember unlike things; types and
// communicators are freed, and others made, whose handles may be the same. Each byte that arrives is
// compared, and each that must stay. Then wrong calls that differ from right ones in their counts alone.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "helper.h"
#include "support/check.h"
#include "support/refused.h"
#include "types.h"

namespace {

using namespace test;

constexpr int kMostElements = 1200;
constexpr unsigned char kUntouched = 0xEE;

// A type, and where the bytes of one element lie.
struct Laid {
    MPI_Datatype handle;
    int extent_bytes;
    std::vector<int> places;
};

// The first one to be made has the handle that was freed last.
std::vector<Laid> make_types(int first) {
    auto run = [](int bytes) {
        std::vector<int> places;
        for (int i = 0; i < bytes; ++i) places.push_back(i);
        return places;
    };
    std::vector<Laid> types(5);
    for (int i = 0; i < 5; ++i) {
        const int which = (first + i) % 5;
        Laid& type = types[static_cast<std::size_t>(which)];
        if (which == 0) type = {contiguous(1, MPI_BYTE), 1, run(1)};
        if (which == 1) type = {contiguous(1, MPI_INT), 4, run(4)};
        if (which == 2) type = {contiguous(3, MPI_BYTE), 3, run(3)};
        if (which == 3) type = {resized(MPI_SHORT, 0, 4), 4, run(2)};
        if (which == 4) type = {vector(2, 1, 2, MPI_BYTE), 3, {0, 2}};
    }
    return types;
}

struct World {
    MPI_Comm handle;
    int rank, ranks;
};

std::vector<World> make_comms() {
    std::vector<World> comms(4);
    comms[0].handle = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1].handle);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &comms[2].handle);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank() == 0 ? 0 : 1, 0, &comms[3].handle);
    for (World& comm : comms) {
        MPI_Comm_rank(comm.handle, &comm.rank);
        MPI_Comm_size(comm.handle, &comm.ranks);
    }
    return comms;
}

void free_all(std::vector<World>& comms) {
    for (std::size_t i = 1; i < comms.size(); ++i) MPI_Comm_free(&comms[i].handle);
}
void free_all(std::vector<Laid>& types) {
    for (Laid& type : types) MPI_Type_free(&type.handle);
}

unsigned char byte_of(int call, int from, int to, int at) {
    return static_cast<unsigned char>(call * 31 + from * 7 + to * 13 + at * 3 + at / 256);
}

// The elements of blocks, each block from a first element on.
class Memory {
  public:
    Memory(const Laid& type, int elements)
        : type_(type), bytes_(static_cast<std::size_t>((elements + 1) * type.extent_bytes + 8), kUntouched) {}
    void* at(int element = 0) { return bytes_.data() + element * type_.extent_bytes; }
    void fill(int first, int count, int call, int from, int to) {
        each(first, count, [&](int place, int at) {
            bytes_[static_cast<std::size_t>(place)] = byte_of(call, from, to, at);
        });
    }
    // Returns: whether the block is as it was sent. What is compared does not count as touched any more.
    bool take(int first, int count, int call, int from, int to) {
        bool is_right = true;
        each(first, count, [&](int place, int at) {
            unsigned char& byte = bytes_[static_cast<std::size_t>(place)];
            is_right = is_right && byte == byte_of(call, from, to, at);
            byte = kUntouched;
        });
        return is_right;
    }
    bool is_untouched() const {
        return std::ranges::all_of(bytes_, [](unsigned char byte) { return byte == kUntouched; });
    }

  private:
    template <class Do>
    void each(int first, int count, Do act) {
        int at = 0;
        for (int element = first; element < first + count; ++element)
            for (const int place : type_.places) act(element * type_.extent_bytes + place, at++);
    }
    const Laid& type_;
    std::vector<unsigned char> bytes_;
};

// What a call is like; drawn alike on all ranks.
struct Kind {
    int collective, count, root;
    const World& comm;
    const Laid& type;
};

void alltoall(const Kind& k, int call) {
    Memory send(k.type, k.count * k.comm.ranks), recv(k.type, k.count * k.comm.ranks);
    for (int to = 0; to < k.comm.ranks; ++to) send.fill(to * k.count, k.count, call, k.comm.rank, to);
    MPI_Alltoall(send.at(), k.count, k.type.handle, recv.at(), k.count, k.type.handle, k.comm.handle);
    for (int from = 0; from < k.comm.ranks; ++from)
        CHECK(recv.take(from * k.count, k.count, call, from, k.comm.rank));
    CHECK(recv.is_untouched());
}

void allgather(const Kind& k, int call) {
    Memory send(k.type, k.count), recv(k.type, k.count * k.comm.ranks);
    send.fill(0, k.count, call, k.comm.rank, 0);
    MPI_Allgather(send.at(), k.count, k.type.handle, recv.at(), k.count, k.type.handle, k.comm.handle);
    for (int from = 0; from < k.comm.ranks; ++from) CHECK(recv.take(from * k.count, k.count, call, from, 0));
    CHECK(recv.is_untouched());
}

void bcast(const Kind& k, int call) {
    Memory data(k.type, k.count);
    if (k.comm.rank == k.root) data.fill(0, k.count, call, k.root, 0);
    MPI_Bcast(data.at(), k.count, k.type.handle, k.root, k.comm.handle);
    CHECK(data.take(0, k.count, call, k.root, 0));
    CHECK(data.is_untouched());
}

// The counts of the v forms: some blocks are empty, some half as large.
int count_of(const Kind& k, int call, int from, int to) {
    const int draw = (call + 5 * from + 3 * to) % 7;
    return draw == 0 ? 0 : draw < 3 ? k.count / 2 : k.count;
}

void allgatherv(const Kind& k, int call) {
    std::vector<int> counts, places;
    int elements = 0;
    for (int from = 0; from < k.comm.ranks; ++from) {
        counts.push_back(count_of(k, call, from, 0));
        places.push_back(elements);
        elements += counts.back() + from % 2;
    }
    const int mine = counts[static_cast<std::size_t>(k.comm.rank)];
    Memory send(k.type, mine), recv(k.type, elements);
    send.fill(0, mine, call, k.comm.rank, 0);
    MPI_Allgatherv(send.at(), mine, k.type.handle, recv.at(), counts.data(), places.data(), k.type.handle,
                   k.comm.handle);
    for (int from = 0; from < k.comm.ranks; ++from) {
        const auto i = static_cast<std::size_t>(from);
        CHECK(recv.take(places[i], counts[i], call, from, 0));
    }
    CHECK(recv.is_untouched());
}

void alltoallv(const Kind& k, int call) {
    std::vector<int> sent, send_places, received, recv_places;
    int send_elements = 0, recv_elements = 0;
    for (int peer = 0; peer < k.comm.ranks; ++peer) {
        sent.push_back(count_of(k, call, k.comm.rank, peer));
        received.push_back(count_of(k, call, peer, k.comm.rank));
        send_places.push_back(send_elements);
        recv_places.push_back(recv_elements);
        send_elements += sent.back();
        recv_elements += received.back() + peer % 2;
    }
    Memory send(k.type, send_elements), recv(k.type, recv_elements);
    for (int to = 0; to < k.comm.ranks; ++to) {
        const auto i = static_cast<std::size_t>(to);
        send.fill(send_places[i], sent[i], call, k.comm.rank, to);
    }
    MPI_Alltoallv(send.at(), sent.data(), send_places.data(), k.type.handle, recv.at(), received.data(),
                  recv_places.data(), k.type.handle, k.comm.handle);
    for (int from = 0; from < k.comm.ranks; ++from) {
        const auto i = static_cast<std::size_t>(from);
        CHECK(recv.take(recv_places[i], received[i], call, from, k.comm.rank));
    }
    CHECK(recv.is_untouched());
}

void call_in_any_order(int calls) {
    constexpr void (*kCollectives[])(const Kind&, int) = {alltoall, allgather, bcast, allgatherv, alltoallv};
    constexpr int kCounts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 511, 513, kMostElements};
    Helper helper;
    std::vector<World> comms = make_comms();
    std::vector<Laid> types = make_types(0);
    std::mt19937 draw(7);
    auto below = [&](std::size_t end) { return static_cast<int>(draw() % end); };
    int collective = 0, count = 0, comm = 0, type = 0;
    for (int call = 0; call < calls; ++call) {
        if (call % 301 == 300) {
            free_all(types);
            types = make_types(call);
        }
        if (call % 701 == 700) {
            free_all(comms);
            comms = make_comms();
        }
        // Mostly one thing changes from call to call.
        if (below(3) == 0) collective = below(std::size(kCollectives));
        if (below(2) == 0) count = kCounts[below(std::size(kCounts))];
        if (below(4) == 0) comm = below(comms.size());
        if (below(6) == 0) type = below(types.size());
        const int root = below(static_cast<std::size_t>(world_size()));
        // The last communicator has one rank on rank 0.
        const World& world = comms[static_cast<std::size_t>(comm)];
        const Kind kind{collective, count, root % world.ranks, world, types[static_cast<std::size_t>(type)]};
        if ((call + world_rank()) % 5 == 0)
            helper.run([&] { kCollectives[collective](kind, call); });
        else
            kCollectives[collective](kind, call);
    }
    free_all(types);
    free_all(comms);
}

// On a communicator of its own: the library may leave messages behind.
MPI_Comm returning_comm() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return comm;
}

void refuse_wrong_counts() {
    MPI_Comm comm = returning_comm();
    const auto ranks = static_cast<std::size_t>(world_size());
    std::vector<int> send(256 * ranks, 1), recv(256 * ranks);
    for (const int wrong : {-1, INT32_MIN}) {
        for (int i = 0; i < 4; ++i) {
            MPI_Alltoall(send.data(), 5 + i % 2, MPI_INT, recv.data(), 5 + i % 2, MPI_INT, comm);
            MPI_Allgather(send.data(), 5 + i % 2, MPI_INT, recv.data(), 5 + i % 2, MPI_INT, comm);
            MPI_Bcast(recv.data(), 5 + i % 2, MPI_INT, 0, comm);
        }
        CHECK(class_of(MPI_Alltoall(send.data(), wrong, MPI_INT, recv.data(), wrong, MPI_INT, comm)) ==
              MPI_ERR_COUNT);
        CHECK(class_of(MPI_Allgather(send.data(), wrong, MPI_INT, recv.data(), wrong, MPI_INT, comm)) ==
              MPI_ERR_COUNT);
        CHECK(class_of(MPI_Bcast(recv.data(), wrong, MPI_INT, 0, comm)) == MPI_ERR_COUNT);
    }
    MPI_Comm_free(&comm);
}

// An own block that is sent from where it is received lies elsewhere with each count.
void refuse_own_blocks() {
    MPI_Comm comm = returning_comm();
    const auto ranks = static_cast<std::size_t>(world_size());
    std::vector<int> send(64, 1), recv(64 * ranks);
    for (int i = 0; i < 200; ++i) {
        const int count = 33 + i % 8, right = 33 + (i + 3) % 8;
        MPI_Allgather(send.data(), right, MPI_INT, recv.data(), right, MPI_INT, comm);
        const int got = class_of(MPI_Allgather(recv.data() + world_rank() * count, count, MPI_INT,
                                               recv.data(), count, MPI_INT, comm));
        CHECK(got == (kRefusesAliases ? MPI_ERR_BUFFER : MPI_SUCCESS));
    }
    MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    call_in_any_order(argc > 1 ? std::stoi(argv[1]) : 2000);
    refuse_wrong_counts();
    refuse_own_blocks();
    const int status = finish("repeats");
    MPI_Finalize();
    return status;
}
