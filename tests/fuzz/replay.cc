// SPDX-License-Identifier: BSD-3-Clause
// Gives a fuzz target every file of the folders that are named, once: a test where there is no fuzzer.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz.h"

namespace {

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

int main(int argc, char** argv) {
    int inputs = 0;
    for (int a = 1; a < argc; ++a)
        for (const auto& entry : std::filesystem::directory_iterator(argv[a])) {
            const std::vector<std::uint8_t> bytes = bytes_of(entry.path());
            std::fprintf(stderr, "%s\n", entry.path().c_str());  // the last one is that which fails
            LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
            ++inputs;
        }
    std::printf("%d inputs\n", inputs);
    return inputs > 0 ? 0 : 1;
}
