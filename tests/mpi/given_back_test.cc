// SPDX-License-Identifier: BSD-3-Clause
// Memory that a rank has freed goes back to the system while it allocates nothing, and only calls collectives.
// usage: given_back_test trim: by malloc_trim, at once
#include <malloc.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int kBlocks = 800;
constexpr std::size_t kBlockBytes = 256u << 10;  // larger ones are private
constexpr long kMost_kib = 60 << 10;             // of 200 MiB
constexpr int kTurns = 900;                      // far more than it takes

long shared_kib() {
    std::FILE* status = std::fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;
    while (std::fgets(line, sizeof line, status) != nullptr) std::sscanf(line, "RssShmem: %ld", &kib);
    std::fclose(status);
    return kib;
}

void allocate_and_free() {
    std::vector<void*> blocks(kBlocks);
    for (void*& block : blocks) block = std::memset(std::malloc(kBlockBytes), 1, kBlockBytes);
    for (void* block : blocks) std::free(block);
}

}  // namespace

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<int> out(static_cast<std::size_t>(ranks), 1), in(out);
    long before = shared_kib();
    allocate_and_free();
    if (count > 1 && malloc_trim(0) != 1)
        std::fprintf(stderr, "malloc_trim says that it gave nothing back\n");
    int most = 0;
    for (int turn = 0; turn < (count > 1 ? 1 : kTurns); ++turn) {
        int mine = shared_kib() - before > kMost_kib;
        MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (!most) break;
        for (int i = 0; i < 10; ++i)
            MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, MPI_COMM_WORLD);
        usleep(50'000);
    }
    if (most) std::fprintf(stderr, "%ld KiB were never given back\n", shared_kib() - before);
    MPI_Finalize();
    return most;
}
