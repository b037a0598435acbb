// SPDX-License-Identifier: BSD-3-Clause
//
// Programs that map something else over memory of malloc's, in every way, and go on with collectives on it:
// what comes must be what was sent, and neither collectives nor free may touch what was mapped there.
//
//   overlay_test libc      through libc's functions
//   overlay_test syscall   through syscall()
#include <fcntl.h>
#include <mpi.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "support/check.h"
#include "support/open_comm.h"

namespace {

const std::size_t kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

enum class By { libc, syscall };
By g_by = By::libc;
int g_rank = 0, g_ranks = 0;

char* mapped(long result) {
    CHECK_SAYING(result > 0 || result < -4095, std::strerror(errno));
    return reinterpret_cast<char*>(result);
}

long number(const void* address) { return reinterpret_cast<long>(address); }

long call(long what, long a, long b, long c = 0, long d = 0, long e = 0, long f = 0) {
    return syscall(what, a, b, c, d, e, f);
}

char* map(void* at, std::size_t bytes, int flags, int fd = -1) {
    constexpr int kAccess = PROT_READ | PROT_WRITE;
    if (g_by == By::libc) return mapped(number(mmap(at, bytes, kAccess, flags, fd, 0)));
    return mapped(call(SYS_mmap, number(at), static_cast<long>(bytes), kAccess, flags, fd));
}
char* remap(void* from, std::size_t bytes, int flags, void* to) {
    if (g_by == By::libc) return mapped(number(mremap(from, bytes, bytes, flags, to)));
    return mapped(call(SYS_mremap, number(from), static_cast<long>(bytes), static_cast<long>(bytes), flags,
                       number(to)));
}
void unmap(void* at, std::size_t bytes) {
    CHECK((g_by == By::libc ? munmap(at, bytes) : call(SYS_munmap, number(at), static_cast<long>(bytes))) ==
          0);
}
char* attach(int id, void* at) {
    if (g_by == By::libc) return mapped(number(shmat(id, at, SHM_REMAP)));
    return mapped(call(SYS_shmat, id, number(at), SHM_REMAP));
}

// A mapping that the program has put over a part of a buffer, and keeps by another name.
struct Overlay {
    char* at = nullptr;
    std::size_t bytes = 0;
    int fd = -1;            // a file that is mapped there, shared
    char* moved = nullptr;  // where the memory went that was there
};

int new_file(std::size_t bytes) {
    char path[] = "/tmp/coco-overlay-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && unlink(path) == 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0);
    return fd;
}

constexpr const char* kWays[] = {"anonymous",   "shared file",   "private file", "mremap onto",
                                 "mremap away", "new in a hole", "shmat"};
constexpr int kWayCount = 7;

void lay_over(int way, Overlay& over) {
    char *at = over.at, *found = nullptr;
    std::size_t bytes = over.bytes;
    constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;
    if (way == 0) {
        found = map(at, bytes, kAnonymous | MAP_FIXED);
    } else if (way == 1) {
        over.fd = new_file(bytes);
        found = map(at, bytes, MAP_SHARED | MAP_FIXED, over.fd);
    } else if (way == 2) {
        int fd = new_file(bytes);
        found = map(at, bytes, MAP_PRIVATE | MAP_FIXED, fd);
        close(fd);
    } else if (way == 3) {
        found = remap(map(nullptr, bytes, kAnonymous), bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at);
    } else if (way == 4) {
        std::memset(at, 'm', bytes);
        over.moved = remap(at, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, map(nullptr, bytes, kAnonymous));
        CHECK(over.moved[0] == 'm' && over.moved[bytes - 1] == 'm');
        found = map(at, bytes, kAnonymous | MAP_FIXED);
    } else if (way == 5) {
        unmap(at, bytes);
        found = map(at, bytes, kAnonymous);  // a hint, which the kernel takes where it can
        if (found != at) unmap(found, bytes), found = map(at, bytes, kAnonymous | MAP_FIXED);
    } else {
        int id = shmget(IPC_PRIVATE, bytes, 0600 | IPC_CREAT);
        found = attach(id, at);
        shmctl(id, IPC_RMID, nullptr);
    }
    CHECK(found == at);
}

// UCX puts an mremap of its own in the place of libc's, which loses the new address.
bool mremap_works() {
    if (g_by != By::libc) return true;
    constexpr int kAccess = PROT_READ | PROT_WRITE, kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;
    void *from = mmap(nullptr, kPage, kAccess, kAnonymous, -1, 0),
         *to = mmap(nullptr, kPage, kAccess, kAnonymous, -1, 0);
    return mremap(from, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
}

enum class From { malloc, mpi };

// A buffer whose inner pages are overlaid.
struct Buffer {
    Buffer(From from, std::size_t bytes, int way) : from_(from) {
        void* memory = nullptr;
        if (from == From::mpi)
            MPI_Alloc_mem(static_cast<MPI_Aint>(bytes + 2 * kPage), MPI_INFO_NULL, &memory);
        else
            CHECK(posix_memalign(&memory, kPage, bytes + 2 * kPage) == 0);
        block_ = static_cast<char*>(memory);
        data = block_ + (kPage - number(block_) % kPage) % kPage;
        std::memset(data, 'o', bytes);
        std::size_t whole = bytes / kPage * kPage, skip = whole > 2 * kPage ? kPage : 0;
        over = {data + skip, whole - skip};
        if (way >= 0) lay_over(way, over);
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    // Frees it; what it had mapped stays as it was while the memory is used again.
    ~Buffer() {
        std::vector<char> kept(over.bytes);
        if (over.fd >= 0)
            CHECK(pread(over.fd, kept.data(), over.bytes, 0) == static_cast<ssize_t>(over.bytes));
        from_ == From::mpi ? static_cast<void>(MPI_Free_mem(block_)) : free(block_);
        use_again();
        if (over.fd >= 0) {
            std::vector<char> now(over.bytes);
            CHECK(pread(over.fd, now.data(), over.bytes, 0) == static_cast<ssize_t>(over.bytes));
            CHECK(now == kept);
            close(over.fd);
        }
        if (over.moved == nullptr) return;
        for (std::size_t i = 0; i < over.bytes; ++i)
            if (over.moved[i] != 'm') {
                CHECK(!"memory that was moved away has changed");
                break;
            }
        unmap(over.moved, over.bytes);
    }
    void leave() const {
        if (over.fd >= 0) close(over.fd);
    }
    void use_again() const {
        std::vector<void*> blocks;
        for (int i = 0; i < 6; ++i) {
            blocks.push_back(calloc(1, over.bytes + 3 * kPage));
            const char* bytes = static_cast<char*>(blocks.back());
            CHECK(bytes[0] == 0 && std::memcmp(bytes, bytes + 1, over.bytes) == 0);
            std::memset(blocks.back(), 'u', over.bytes + 3 * kPage);
        }
        for (void* block : blocks) free(block);
    }

    char* data;
    Overlay over;

  private:
    From from_;
    char* block_;
};

void fill(char* data, std::size_t bytes, int from, int to, int seed) {
    std::uint64_t word = static_cast<std::uint64_t>(from * 1009 + to * 31 + seed) * 0x9e3779b97f4a7c15u + 1;
    for (std::size_t at = 0; at + 8 <= bytes; at += 8) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        std::memcpy(data + at, &word, 8);
    }
}

bool holds(const char* data, std::size_t bytes, int from, int to, int seed) {
    std::vector<char> wanted(bytes);
    fill(wanted.data(), bytes, from, to, seed);
    return std::memcmp(data, wanted.data(), bytes) == 0;
}

constexpr const char* kNames[] = {"alltoall", "alltoallv", "allgather", "bcast", "neighbor_alltoall"};
constexpr int kCollectives = 5;

MPI_Comm g_ring = MPI_COMM_NULL;

void invoke(int what, const char* send, char* recv, int block) {
    std::vector<int> counts(static_cast<std::size_t>(g_ranks), block), places(counts);
    for (int r = 0; r < g_ranks; ++r) places[static_cast<std::size_t>(r)] = r * block;
    switch (what) {
        case 0:
            MPI_Alltoall(send, block, MPI_CHAR, recv, block, MPI_CHAR, MPI_COMM_WORLD);
            break;
        case 1:
            MPI_Alltoallv(send, counts.data(), places.data(), MPI_CHAR, recv, counts.data(), places.data(),
                          MPI_CHAR, MPI_COMM_WORLD);
            break;
        case 2:
            MPI_Allgather(send, block, MPI_CHAR, recv, block, MPI_CHAR, MPI_COMM_WORLD);
            break;
        case 3:
            if (g_rank == 0) std::memcpy(recv, send, static_cast<std::size_t>(g_ranks * block));
            MPI_Bcast(recv, g_ranks * block, MPI_CHAR, 0, MPI_COMM_WORLD);
            break;
        case 4:
            MPI_Neighbor_alltoall(send, block, MPI_CHAR, recv, block, MPI_CHAR, g_ring);
            break;
    }
}

// Each rank's neighbours are all ranks, in order: the same blocks as those of alltoall.
void make_ring() {
    std::vector<int> all(static_cast<std::size_t>(g_ranks));
    for (int r = 0; r < g_ranks; ++r) all[static_cast<std::size_t>(r)] = r;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, g_ranks, all.data(), MPI_UNWEIGHTED, g_ranks, all.data(),
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &g_ring);
    test::open_comm(g_ring);
    std::vector<char> send(static_cast<std::size_t>(g_ranks)), recv(send);
    for (int i = 0; i < 6; ++i)
        for (int what = 0; what < kCollectives; ++what) invoke(what, send.data(), recv.data(), 1);
}

void try_call(int what, const Buffer& send, const Buffer& recv, int block, int seed, const char* where) {
    auto bytes = static_cast<std::size_t>(block);
    bool gathers = what == 2, casts = what == 3;
    for (int r = 0; r < g_ranks; ++r)
        fill(send.data + r * block, bytes, casts ? 0 : g_rank, gathers ? 0 : r, seed);
    std::memset(recv.data, 'x', bytes * static_cast<std::size_t>(g_ranks));
    invoke(what, send.data, recv.data, block);
    for (int r = 0; r < g_ranks; ++r) {
        bool good = holds(recv.data + r * block, bytes, casts ? 0 : r,
                          casts     ? r
                          : gathers ? 0
                                    : g_rank,
                          seed);
        if (!good)
            std::fprintf(stderr, "%s of %d bytes, %s: rank %d has another block of %d\n", kNames[what], block,
                         where, g_rank, r);
        CHECK(good);
    }
}

// Overlaid on the side that sends, on the one that receives, on both; on all ranks or on one.
void try_way(From from, int way, int block) {
    std::size_t bytes = static_cast<std::size_t>(block) * static_cast<std::size_t>(g_ranks);
    for (int sides = 1; sides <= 3; ++sides) {
        bool mine = sides != 3 || g_rank == g_ranks - 1;
        Buffer send(from, bytes, mine && (sides & 1) != 0 ? way : -1),
            recv(from, bytes, mine && (sides & 2) != 0 ? way : -1);
        for (int what = 0; what < kCollectives; ++what)
            for (int turn = 0; turn < 2; ++turn)
                try_call(what, send, recv, block, 10 * what + turn, kWays[way]);
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
    std::string by = argc > 1 ? argv[1] : "libc";
    g_by = by == "libc" ? By::libc : By::syscall;
    make_ring();
    bool remaps = mremap_works();
    for (int way = 0; way < kWayCount; ++way)
        for (int block : {4096, 65536, 1 << 20})
            if (remaps || (way != 3 && way != 4)) try_way(From::malloc, way, block);
    for (int way = 0; way < 3; ++way) try_way(From::mpi, way, 65536);
    // Blocks that are small, and together are not.
    for (int way = 0; way < 3; ++way) try_way(From::malloc, way, 128 * 1024 / g_ranks / 64 * 64);
    MPI_Comm_free(&g_ring);
    const int verdict = test::finish("overlay");
    MPI_Finalize();
    return verdict;
}
