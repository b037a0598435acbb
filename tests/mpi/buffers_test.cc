// SPDX-License-Identifier: BSD-3-Clause
// Calls that come back to the same buffers: middle and large blocks of malloc's, static data, stacks of main
// and of another thread, mappings. The same buffers again and again with other bytes, parts that begin
// anywhere, bytes beside them that another thread writes all the time, blocks that are freed, grown and taken
// again in between, mappings that are dropped, moved and replaced, children that write to all of it.
#include <mpi.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "memory.h"
#include "support/check.h"
#include "support/counting_neighbor.h"

namespace {

using test::world_rank;
using test::world_size;

constexpr int kCalls = 5;
constexpr std::size_t kSlack = 3 << 20;

// Of what a rank sends to another.
std::uint64_t seed_of(int call, int sender, int receiver) {
    return (static_cast<std::uint64_t>(call) * 256 + static_cast<std::uint64_t>(sender)) * 256 +
           static_cast<std::uint64_t>(receiver);
}

struct Block {
    explicit Block(std::size_t bytes) : memory(static_cast<unsigned char*>(std::malloc(bytes))) {}
    ~Block() { std::free(memory); }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    unsigned char* memory;
};

enum class Kind { alltoall, alltoallv, allgather };

void fill_block(unsigned char* block, std::size_t bytes, std::uint64_t seed) {
    test::fill(reinterpret_cast<char*>(block), bytes, seed);
}

void fill(unsigned char* send, Kind kind, std::size_t bytes, int call) {
    for (int r = 0; r < (kind == Kind::allgather ? 1 : world_size()); ++r)
        fill_block(send + static_cast<std::size_t>(r) * bytes, bytes, seed_of(call, world_rank(), r));
}

bool is_right(const unsigned char* recv, Kind kind, std::size_t bytes, int call) {
    static thread_local std::vector<unsigned char> wanted;
    wanted.resize(std::max(wanted.size(), bytes));
    bool right = true;
    for (int r = 0; r < world_size(); ++r) {
        fill_block(wanted.data(), bytes, seed_of(call, r, kind == Kind::allgather ? 0 : world_rank()));
        right = right && std::memcmp(recv + static_cast<std::size_t>(r) * bytes, wanted.data(), bytes) == 0;
    }
    return right;
}

void call_once(Kind kind, unsigned char* send, unsigned char* recv, int bytes) {
    std::vector<int> counts(static_cast<std::size_t>(world_size()), bytes), starts;
    for (int r = 0; r < world_size(); ++r) starts.push_back(r * bytes);
    if (kind == Kind::alltoall)
        MPI_Alltoall(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
    else if (kind == Kind::alltoallv)
        MPI_Alltoallv(send, counts.data(), starts.data(), MPI_BYTE, recv, counts.data(), starts.data(),
                      MPI_BYTE, MPI_COMM_WORLD);
    else
        MPI_Allgather(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

void use_again(Kind kind, int bytes, unsigned char* send, unsigned char* recv) {
    const std::size_t all = static_cast<std::size_t>(bytes) * static_cast<std::size_t>(world_size());
    const std::size_t sent = kind == Kind::allgather ? static_cast<std::size_t>(bytes) : all;
    test::CountingNeighbor beside_send(send, send + sent), beside_recv(recv, recv + all);
    for (int call = 0; call < kCalls; ++call) {
        fill(send, kind, static_cast<std::size_t>(bytes), call);
        call_once(kind, send, recv, bytes);
        CHECK(is_right(recv, kind, static_cast<std::size_t>(bytes), call));
    }
    CHECK(beside_send.done() && beside_recv.done());
}

// skip: where the buffers begin in their blocks, each rank's elsewhere.
void come_back(Kind kind, int bytes, std::size_t skip) {
    const std::size_t all = static_cast<std::size_t>(bytes) * static_cast<std::size_t>(world_size());
    skip = 64 + skip * static_cast<std::size_t>(world_rank() + 1);
    const Block from(all + skip + kSlack), to(all + skip + kSlack);
    use_again(kind, bytes, from.memory + skip, to.memory + skip);
}

// The same outside malloc's memory: begins anywhere, ends anywhere, a few bytes beside are the neighbours'.
constexpr int kOutsideBytes = 320'001;
constexpr std::size_t kOutsideMost = 8 * 320'001 + 64 * 1024;
unsigned char g_send[kOutsideMost], g_recv[kOutsideMost];

// Of a block: smaller ones where there are more than eight ranks.
int outside_block_bytes() {
    const auto ranks = static_cast<std::size_t>(world_size());
    return std::min(kOutsideBytes, static_cast<int>((kOutsideMost - 64 * 1024) / ranks) - 3);
}

void come_back_outside(unsigned char* send, unsigned char* recv, std::initializer_list<Kind> kinds) {
    const std::size_t skip = 64 + 1237 * static_cast<std::size_t>(world_rank() + 1);
    for (Kind kind : kinds) use_again(kind, outside_block_bytes(), send + skip, recv + skip);
}

__attribute__((noinline)) void come_back_on_stack() {
    unsigned char send[kOutsideMost], recv[kOutsideMost];
    come_back_outside(send, recv, {Kind::alltoall, Kind::allgather});
    // A child that runs on these pages, and writes to all of them.
    std::memset(send, 17, sizeof send);
    const pid_t child = fork();
    if (child == 0) {
        std::memset(send, 18, sizeof send);
        std::memset(g_send, 18, sizeof g_send);
        _exit(0);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    for (std::size_t at = 0; at < sizeof send; at += 64) CHECK(send[at] == 17);
}

void* map_bytes(std::size_t bytes) {
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Mappings that are dropped, moved, replaced and shut between calls.
void change_mappings() {
    const std::size_t bytes =
        (static_cast<std::size_t>(world_size()) * kOutsideBytes + 4095) & ~std::size_t{4095};
    auto* send = static_cast<unsigned char*>(map_bytes(bytes));
    auto* recv = static_cast<unsigned char*>(map_bytes(bytes));
    for (int call = 0; call < 9; ++call) {
        fill(send, Kind::alltoall, kOutsideBytes, call);
        call_once(Kind::alltoall, send, recv, kOutsideBytes);
        CHECK(is_right(recv, Kind::alltoall, kOutsideBytes, call));
        switch (call) {
            case 1:
                CHECK(madvise(send, bytes, MADV_DONTNEED) == 0);
                for (std::size_t at = 0; at < bytes; at += 512) CHECK(send[at] == 0);
                break;
            case 3: {
                auto* larger = static_cast<unsigned char*>(mremap(send, bytes, 2 * bytes, MREMAP_MAYMOVE));
                CHECK(larger != MAP_FAILED);
                send = larger;
                break;
            }
            case 5:
                CHECK(mmap(send, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                           0) == send);
                CHECK(send[bytes / 2] == 0);
                break;
            case 7:
                CHECK(mprotect(send, bytes, PROT_READ) == 0);
                CHECK(mprotect(send, bytes, PROT_READ | PROT_WRITE) == 0);
                break;
            default:
                break;
        }
    }
    munmap(send, 2 * bytes);
    munmap(recv, bytes);
}

void come_back_outside_everywhere() {
    come_back_outside(g_send, g_recv, {Kind::alltoallv, Kind::alltoall});
    auto* mapped = static_cast<unsigned char*>(map_bytes(2 * kOutsideMost));
    come_back_outside(mapped, mapped + kOutsideMost, {Kind::alltoallv, Kind::allgather});
    munmap(mapped, 2 * kOutsideMost);
    come_back_on_stack();
    std::thread(come_back_on_stack).join();
    change_mappings();
}

// Blocks change their size and their owner between calls.
void change_blocks() {
    constexpr int kBytes = 300'000;
    const std::size_t all = static_cast<std::size_t>(kBytes) * static_cast<std::size_t>(world_size());
    auto* send = static_cast<unsigned char*>(std::malloc(all + kSlack));
    auto* recv = static_cast<unsigned char*>(std::malloc(all + kSlack));
    for (int call = 0; call < 4 * kCalls; ++call) {
        fill(send, Kind::alltoall, kBytes, call);
        call_once(Kind::alltoall, send, recv, kBytes);
        CHECK(is_right(recv, Kind::alltoall, kBytes, call));
        if (call % 5 == 4)
            send = static_cast<unsigned char*>(
                std::realloc(send, all + kSlack * static_cast<std::size_t>(call % 3 + 1)));
        if (call % 11 == 10) {
            std::free(recv);
            recv = static_cast<unsigned char*>(std::calloc(all + kSlack, 1));
            for (std::size_t at = 0; at < all + kSlack; at += 997) CHECK(recv[at] == 0);
        }
        if (call % 7 == 6) std::swap(send, recv);
    }
    std::free(send);
    std::free(recv);
}

// The send buffer is memory of a window, into which peers put between calls.
void be_a_window(bool attached) {
    constexpr int kBytes = 500'003;
    const std::size_t all = static_cast<std::size_t>(kBytes) * static_cast<std::size_t>(world_size());
    Block block(all), to(all + kSlack);
    unsigned char* const send = block.memory;
    MPI_Win win;
    MPI_Aint begin = 0;
    if (attached) {
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_attach(win, send, static_cast<MPI_Aint>(all));
        MPI_Get_address(send, &begin);
    } else {
        MPI_Win_create(send, static_cast<MPI_Aint>(all), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    const int next = (world_rank() + 1) % world_size();
    MPI_Aint next_begin = begin;
    MPI_Sendrecv(&begin, 1, MPI_AINT, (next + world_size() - 2) % world_size(), 0, &next_begin, 1, MPI_AINT,
                 next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int call = 0; call < kCalls; ++call) {
        fill(send, Kind::alltoall, kBytes, call);
        // Each byte once more, by a peer.
        std::vector<unsigned char> part(all);
        for (int r = 0; r < world_size(); ++r)
            fill_block(part.data() + static_cast<std::size_t>(r) * kBytes, kBytes,
                       seed_of(call + 1, next, r));
        MPI_Win_fence(0, win);
        MPI_Put(part.data(), static_cast<int>(all), MPI_BYTE, next, next_begin, static_cast<int>(all),
                MPI_BYTE, win);
        MPI_Win_fence(0, win);
        call_once(Kind::alltoall, send, to.memory, kBytes);
        CHECK(is_right(to.memory, Kind::alltoall, kBytes, call + 1));
    }
    if (attached) MPI_Win_detach(win, send);
    MPI_Win_free(&win);
}

}  // namespace

int main(int argc, char** argv) {
    int given = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &given);
    for (Kind kind : {Kind::alltoall, Kind::alltoallv, Kind::allgather})
        for (int bytes : {40'000, 400'001, 17'000'003})
            for (std::size_t skip : {1237u, 4096u}) come_back(kind, bytes, skip);
    change_blocks();
    come_back_outside_everywhere();
    for (bool attached : {false, true}) be_a_window(attached);
    const int status = test::finish("buffers_test");
    MPI_Finalize();
    return status;
}
