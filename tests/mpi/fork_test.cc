// SPDX-License-Identifier: BSD-3-Clause
//
// fork in an MPI program: parent and child both write to what was allocated before, allocate and free, and
// neither sees the other's writes; the parent's collectives go on. Twice, with calls in between.
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "call.h"

namespace {

using namespace test;

constexpr std::size_t kBytes = 3 << 20;

bool holds(const char* data, std::size_t bytes, char value) {
    for (std::size_t i = 0; i < bytes; ++i)
        if (data[i] != value) return false;
    return true;
}

// The child's life. Returns: its exit status.
int child(char* data, int pipe_out) {
    bool good = holds(data, kBytes, 'a');
    std::memset(data, 'c', kBytes);
    std::vector<char*> blocks;
    for (std::size_t size = 1; size < kBytes; size = size * 3 + 1) {
        blocks.push_back(static_cast<char*>(std::malloc(size)));
        std::memset(blocks.back(), 'd', size);
    }
    if (write(pipe_out, "x", 1) != 1) good = false;
    usleep(20000);  // while the parent writes
    good = good && holds(data, kBytes, 'c');
    for (char* block : blocks) std::free(block);
    return good ? 0 : 1;
}

void fork_once() {
    char* data = static_cast<char*>(std::malloc(kBytes));
    std::memset(data, 'a', kBytes);
    int ends[2];
    CHECK(pipe(ends) == 0);
    const pid_t pid = fork();
    if (pid == 0) _exit(child(data, ends[1]));
    char token;
    CHECK(pid > 0 && read(ends[0], &token, 1) == 1);  // the child has written
    CHECK(holds(data, kBytes, 'a'));
    std::memset(data, 'p', kBytes);
    char* more = static_cast<char*>(std::malloc(kBytes));
    std::memset(more, 'q', kBytes);
    warm_up(MPI_COMM_WORLD);
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(holds(data, kBytes, 'p') && holds(more, kBytes, 'q'));
    std::free(more);
    std::free(data);
    close(ends[0]);
    close(ends[1]);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    warm_up(MPI_COMM_WORLD);
    fork_once();
    warm_up(MPI_COMM_WORLD);
    fork_once();
    CHECK(std::system("true") == 0);  // fork and exec
    warm_up(MPI_COMM_WORLD);
    const int verdict = finish("fork");
    MPI_Finalize();
    return verdict;
}
