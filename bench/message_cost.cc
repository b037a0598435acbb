// SPDX-License-Identifier: BSD-3-Clause
//
// The cost of a message, between hosts and within one, in nanoseconds: bench/simulate has to know it of a
// machine (docs/simulation.md). The ranks of all hosts may share CPUs, as on scripts/cluster.
//
//   scripts/cluster run --hosts 4 --per-host 4 -- build/mpich/bench/message_cost --rounds 9
//
// Rows, each for messages to other hosts (far) and within one (near), by size, medians:
//   send, receive   CPU time of rank 0 for a message more, while all others sleep and what it receives lies
//                   in its sockets already: stream: all with one rank; fan: one with each of many
//   one way         half a round trip of rank 0 and another, while all others sleep (asleep) or wait in MPI
//                   (waiting)
//   exchange        all CPUs' time for a message when each rank sends one to each that is far, or near;
//                   more: for a message more to each
//   ring            the same when each rank sends one to a rank of the next host and waits for its own
// Sends and receives alone are measured to 4 KiB: what is longer waits for the other side.
// Options: --to BYTES, --rounds N, --csv.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "turns.h"

namespace {

constexpr int kTag = 1, kStopTag = 2;
constexpr long kEagerBytes = 4096;  // what both MPIs send without asking
constexpr int kMostMessages = 16;   // to a peer; and in an exchange, to each:
constexpr int kMore = 4;

bench::Timing timing;
std::vector<char> sent, received;

// Where the message of that number is to come.
char* room(std::size_t number, int bytes) {
    std::size_t end = (number + 1) * static_cast<std::size_t>(bytes);
    if (received.size() < end) bench::give_up("more messages than there is room for");
    return received.data() + end - bytes;
}

double cpu_ns() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

void print(const std::string& what, long bytes, double ns) {
    if (bench::rank() != 0) return;
    std::printf(timing.csv ? "%s,%ld,%.0f\n" : "%-28s %7ld %9.0f\n", what.c_str(), bytes, ns);
    std::fflush(stdout);
}

double median_of(const std::function<double()>& once) {
    std::vector<double> all;
    once();
    for (int i = 0; i < timing.rounds; ++i) all.push_back(once());
    return bench::median(all);
}

// Slope of the straight line that comes next to all points.
double slope(const std::vector<double>& x, const std::vector<double>& y) {
    double n = static_cast<double>(x.size()), sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        sx += x[i];
        sy += y[i];
        sxx += x[i] * x[i];
        sxy += x[i] * y[i];
    }
    return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

// ---- who is where

// By rank: the lowest rank of its host.
std::vector<int> hosts() {
    MPI_Comm mates;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &mates);
    int first = bench::rank();
    MPI_Bcast(&first, 1, MPI_INT, 0, mates);
    MPI_Comm_free(&mates);
    std::vector<int> all(static_cast<std::size_t>(bench::ranks()));
    MPI_Allgather(&first, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
    return all;
}

std::vector<int> peers_of(int rank, bool far) {
    static const std::vector<int> host = hosts();
    std::vector<int> peers;
    for (int i = 1; i < bench::ranks(); ++i) {
        int peer = (rank + i) % bench::ranks();
        if ((host[peer] != host[rank]) == far) peers.push_back(peer);
    }
    return peers;
}

// ---- messages of rank 0 while nobody else runs

// A message between rank 0 and each of `peers`, which may name one several times.
struct Batch {
    bool sends;  // rank 0 does
    std::vector<int> peers;
    int bytes;
};

void post(const Batch& b, bool receives, std::vector<MPI_Request>& requests) {
    auto start = [&](int peer) {
        MPI_Request& request = requests.emplace_back();
        if (receives)
            MPI_Irecv(room(requests.size() - 1, b.bytes), b.bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD,
                      &request);
        else
            MPI_Isend(sent.data(), b.bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, &request);
    };
    for (int peer : b.peers)
        if (bench::rank() == 0)
            start(peer);
        else if (peer == bench::rank())
            start(0);
}

// Returns, on rank 0: its CPU time. Senders start when all others sleep; receivers when all has come.
double cpu_of_batch(const Batch& b) {
    constexpr useconds_t kFallAsleep_us = 1000, kAllCome_us = 4000;
    const bool receives = (bench::rank() == 0) != b.sends;
    std::vector<MPI_Request> requests;
    requests.reserve(b.peers.size());
    if (receives) post(b, true, requests);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(receives ? kAllCome_us : kFallAsleep_us);
    double begin = cpu_ns();
    if (!receives) post(b, false, requests);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    return cpu_ns() - begin;
}

void measure_cpu(const std::string& where, const std::vector<int>& peers, bool sends, bool fan, int bytes) {
    constexpr std::size_t kFewest = 6;  // peers, to see a slope
    if (fan && peers.size() < kFewest) return;
    const int most = fan ? static_cast<int>(peers.size()) : kMostMessages;
    std::vector<double> messages, ns;
    for (int count = 1; count <= most; count = count < most ? std::min(2 * count, most) : most + 1) {
        Batch batch{sends, std::vector<int>(static_cast<std::size_t>(count), peers[0]), bytes};
        if (fan) batch.peers.assign(peers.begin(), peers.begin() + count);
        messages.push_back(count);
        ns.push_back(median_of([&] { return cpu_of_batch(batch); }));
    }
    print(std::string(sends ? "send " : "receive ") + (fan ? "fan " : "stream ") + where, bytes,
          slope(messages, ns));
}

// ---- round trips of rank 0

constexpr int kTrips = 100;

void go_round(int peer, int bytes) {
    const bool first = bench::rank() == 0;
    for (int i = 0; i < kTrips; ++i) {
        if (first) MPI_Send(sent.data(), bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD);
        MPI_Recv(received.data(), bytes, MPI_BYTE, first ? peer : 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!first) MPI_Send(sent.data(), bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
    }
}

void end_sleep_of_others(int peer) {
    for (int r = 1; r < bench::ranks(); ++r)
        if (r != peer) MPI_Send(nullptr, 0, MPI_BYTE, r, kStopTag, MPI_COMM_WORLD);
}

void sleep_until_told() {
    for (int told = 0; told == 0; usleep(5000))
        MPI_Iprobe(0, kStopTag, MPI_COMM_WORLD, &told, MPI_STATUS_IGNORE);
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, kStopTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void measure_one_way(const std::string& where, int peer, bool others_sleep, int bytes) {
    const bool takes_part = bench::rank() == 0 || bench::rank() == peer;
    double ns = median_of([&] {
        MPI_Barrier(MPI_COMM_WORLD);
        if (!takes_part && others_sleep) sleep_until_told();
        double begin = MPI_Wtime();
        if (takes_part) go_round(peer, bytes);
        double end = MPI_Wtime();
        if (bench::rank() == 0 && others_sleep) end_sleep_of_others(peer);
        return (end - begin) * 1e9 / (2 * kTrips);
    });
    print("one way " + where + (others_sleep ? " asleep" : " waiting"), bytes, ns);
}

// ---- all ranks at once

// A rank's part: `count` messages to each of `to`, as many from each of `from`.
void exchange(const std::vector<int>& to, const std::vector<int>& from, int count, int bytes) {
    std::vector<MPI_Request> requests(2 * to.size() * static_cast<std::size_t>(count));
    MPI_Request* next = requests.data();
    std::size_t number = 0;
    for (int i = 0; i < count; ++i)
        for (int peer : from)
            MPI_Irecv(room(number++, bytes), bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, next++);
    for (int i = 0; i < count; ++i)
        for (int peer : to) MPI_Isend(sent.data(), bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, next++);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

// The time of all CPUs for each of a rank's `messages`.
double cpus_ns(const bench::Call& call, double messages) {
    double us = median_of([&] { return bench::time_batch(call, 20, timing, {}); });
    double cpus =
        std::min(static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)), static_cast<double>(bench::ranks()));
    return us * 1000 * cpus / bench::ranks() / messages;
}

void measure_exchange(const std::string& where, const std::vector<int>& peers, int bytes) {
    auto ns = [&](int count) {
        return cpus_ns([&] { exchange(peers, peers, count, bytes); }, static_cast<double>(peers.size()));
    };
    const double one = ns(1);
    print("exchange " + where, bytes, one);
    if (bytes <= kEagerBytes) print("exchange more " + where, bytes, (ns(kMore) - one) / (kMore - 1));
}

void measure_ring(int bytes) {
    const int all = bench::ranks(), mates = static_cast<int>(peers_of(0, false).size()) + 1;
    const std::vector<int> to{(bench::rank() + mates) % all}, from{(bench::rank() + all - mates) % all};
    print("ring far", bytes, cpus_ns([&] { exchange(to, from, 1, bytes); }, 1));
}

void measure(const std::string& where, bool far, int bytes) {
    const std::vector<int> peers = peers_of(0, far);
    if (peers.empty()) return;
    for (bool sends : {true, false})
        for (bool fan : {false, true})
            if (bytes <= kEagerBytes) measure_cpu(where, peers, sends, fan, bytes);
    for (bool asleep : {true, false}) measure_one_way(where, peers.back(), asleep, bytes);
    measure_exchange(where, peers_of(bench::rank(), far), bytes);
    if (far) measure_ring(bytes);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    bench::Timing defaults;
    defaults.to_bytes = 64 << 10;
    timing = bench::read_timing(argc, argv, defaults, [](const std::string&, const auto&) { return false; });
    sent.resize(static_cast<std::size_t>(timing.to_bytes));
    received.resize(sent.size() * std::max(kMostMessages, kMore * bench::ranks()));
    for (long bytes = timing.from_bytes; bytes <= timing.to_bytes; bytes *= bytes < kEagerBytes ? 8 : 2)
        for (bool far : {true, false}) measure(far ? "far" : "near", far, static_cast<int>(bytes));
    MPI_Finalize();
}
