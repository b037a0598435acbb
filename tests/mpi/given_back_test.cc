// SPDX-License-Identifier: BSD-3-Clause
// Memory that a rank has freed goes back to the system while it allocates nothing, and only calls
// collectives. usage: given_back_test trim: by malloc_trim, at once
//        given_back_test unlike: where ranks have unequal settings, so that all calls are left to the MPI library
#include <fcntl.h>
#include <malloc.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

constexpr int kBlocks = 800;
constexpr std::size_t kBlockBytes = 256u << 10;  // larger ones are private
constexpr long kMost_kib = 60 << 10;             // of 200 MiB
constexpr int kTurns = 900;                      // far more than it takes

// Allocates nothing: an allocation would give memory back, too.
long shared_kib() {
    static char text[1 << 14];
    const int status = open("/proc/self/status", O_RDONLY);
    const ssize_t bytes = read(status, text, sizeof text - 1);
    close(status);
    text[bytes < 0 ? 0 : bytes] = '\0';
    const char* const found = std::strstr(text, "RssShmem:");
    return found == nullptr ? -1 : std::strtol(found + std::strlen("RssShmem:"), nullptr, 10);
}

void allocate_and_free() {
    std::vector<void*> blocks(kBlocks);
    for (void*& block : blocks) block = std::memset(std::malloc(kBlockBytes), 1, kBlockBytes);
    for (void* block : blocks) std::free(block);
}

// Before MPI_Init, by the launcher's word for the rank.
void unlike_on_rank_1() {
    const char* rank = std::getenv("PMI_RANK");
    if (rank == nullptr) rank = std::getenv("OMPI_COMM_WORLD_RANK");
    if (rank != nullptr && std::string_view(rank) == "1") setenv("COCO_ALLTOALL", "eager", 1);
}

}  // namespace

int main(int count, char** arguments) {
    const std::string_view word = count > 1 ? arguments[1] : "";
    const bool trims = word == "trim";
    if (word == "unlike") unlike_on_rank_1();
    MPI_Init(&count, &arguments);
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<int> out(static_cast<std::size_t>(ranks), 1), in(out);
    long before = shared_kib();
    allocate_and_free();
    if (trims && malloc_trim(0) != 1) std::fprintf(stderr, "malloc_trim says that it gave nothing back\n");
    int most = 0;
    for (int turn = 0; turn < (trims ? 1 : kTurns); ++turn) {
        int mine = shared_kib() - before > kMost_kib;
        MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (turn == 0 && !trims && !most) {
            std::fprintf(stderr, "what was freed was not kept: nothing is tested\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        if (!most) break;
        for (int i = 0; i < 10; ++i)
            MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, MPI_COMM_WORLD);
        usleep(50'000);
    }
    if (most) std::fprintf(stderr, "%ld KiB were never given back\n", shared_kib() - before);
    MPI_Finalize();
    return most;
}
