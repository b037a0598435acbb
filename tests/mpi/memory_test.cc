// SPDX-License-Identifier: BSD-3-Clause
//
// Allocation under pressure, together with collectives: many blocks of many sizes, more than a small limit
// holds, all written and checked; calls on them give the right data wherever the blocks came to lie.
//
//   memory_test early    with as much of it taken before MPI_Init as there is
#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "call.h"

namespace {

using namespace test;

constexpr int kBlocks = 400;
constexpr std::size_t kTotalBytes = 64 << 20;

struct Block {
    char* data;
    std::size_t bytes;
    char value;
    bool intact() const {
        for (std::size_t i = 0; i < bytes; i += 97)
            if (data[i] != value) return false;
        return data[bytes - 1] == value;
    }
};

// More than a small mount for shared memory holds, before the MPI library asks for its own.
void take_early() {
    for (int i = 0; i < 400; ++i) std::memset(std::malloc(100'000), 'e', 100'000);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::string(argv[1]) == "early") take_early();
    MPI_Init(&argc, &argv);
    std::vector<Block> blocks;
    std::size_t total = 0;
    for (int i = 0; i < kBlocks && total < kTotalBytes; ++i) {
        const std::size_t bytes = 1 + mix(static_cast<unsigned>(i)) % (i % 8 == 0 ? 2 << 20 : 40000);
        Block block{static_cast<char*>(std::malloc(bytes)), bytes, static_cast<char>(i)};
        CHECK(block.data != nullptr);
        if (block.data == nullptr) break;
        std::memset(block.data, block.value, bytes);
        blocks.push_back(block);
        total += bytes;
        if (i % 50 == 0) warm_up(MPI_COMM_WORLD);
    }
    Call c;
    c.send = c.recv = {{MPI_INT}, {30000}, {}};
    for (int i = 0; i < 4; ++i) verify(c);
    for (std::size_t i = 0; i < blocks.size(); i += 2) std::free(blocks[i].data);
    for (int i = 0; i < 4; ++i) verify(c);
    for (std::size_t i = 1; i < blocks.size(); i += 2) CHECK(blocks[i].intact());
    for (std::size_t i = 1; i < blocks.size(); i += 2) std::free(blocks[i].data);
    const int verdict = finish("memory");
    MPI_Finalize();
    return verdict;
}
