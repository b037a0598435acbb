// SPDX-License-Identifier: BSD-3-Clause
#include "base/env.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/kernel.h"

namespace coco::base {
namespace {

constexpr const char* kAlgorithm = "mpi, or an algorithm of this collective (coco info --algorithms)";

constexpr Setting kSettings[] = {
    {"COCO_DISABLE", "1, 0, or a comma-separated list of collectives", "0",
     "1 leaves every call to the MPI library; a list leaves these collectives to it"},
    {"COCO_ALLTOALL", kAlgorithm, "by policy", "force one algorithm for MPI_Alltoall"},
    {"COCO_ALLTOALLV", kAlgorithm, "by policy", "force one algorithm for MPI_Alltoallv"},
    {"COCO_ALLTOALLW", kAlgorithm, "by policy", "force one algorithm for MPI_Alltoallw"},
    {"COCO_ALLGATHER", kAlgorithm, "by policy", "force one algorithm for MPI_Allgather"},
    {"COCO_ALLGATHERV", kAlgorithm, "by policy", "force one algorithm for MPI_Allgatherv"},
    {"COCO_BCAST", kAlgorithm, "by policy", "force one algorithm for MPI_Bcast"},
    {"COCO_NEIGHBOR_ALLTOALL", kAlgorithm, "by policy", "force one algorithm for MPI_Neighbor_alltoall"},
    {"COCO_NEIGHBOR_ALLTOALLV", kAlgorithm, "by policy", "force one algorithm for MPI_Neighbor_alltoallv"},
    {"COCO_NEIGHBOR_ALLTOALLW", kAlgorithm, "by policy", "force one algorithm for MPI_Neighbor_alltoallw"},
    {"COCO_NEIGHBOR_ALLGATHER", kAlgorithm, "by policy", "force one algorithm for MPI_Neighbor_allgather"},
    {"COCO_NEIGHBOR_ALLGATHERV", kAlgorithm, "by policy", "force one algorithm for MPI_Neighbor_allgatherv"},
    {"COCO_POLICY", "a readable TOML policy file", "built-in rules", "read the policy from this file"},
    {"COCO_LEARN", "on, read, off, or a file name with a / in it or ending in .toml", "on",
     "on: a few calls try other algorithms and the MPI library, and the fastest one runs the rest; at "
     "its end a job writes rules for later jobs, to the cache or to the file; read: such rules are "
     "used, and none are learned; off: only the policy's rules count"},
    {"COCO_STATS", "1, 0, or a file name ending in .json", "0",
     "report at finalize: a table on stderr of rank 0, or a JSON file"},
    {"COCO_LOG", "error, warn, info or debug", "warn", "how much to tell on stderr"},
    {"COCO_HEAP", "adaptive, shared or off", "adaptive",
     "adaptive: blocks of malloc up to 32 MiB are shared, larger ones private; shared: all are shared; off: "
     "the program's own malloc stays"},
    {"COCO_HEAP_LIMIT", "bytes, with K, M, G or T", "half of the node's memory",
     "most bytes of shared heap per rank; past it allocation goes on in private memory; 0 shares nothing"},
    {"COCO_TOPOLOGY", "nodes=N,domains=M or an hwloc synthetic description", "the real machine",
     "an invented machine: ranks are dealt to nodes and domains in rank order"},
    {"COCO_RANK_PROCESS", "a process number and a hash", "unset",
     "set by libcoco itself in MPI_Init: processes that a rank starts inherit it and so are told from ranks"},
    {"COCO_TEST_DELAY", "microseconds", "0", "tests only: random delays up to this long inside our calls"},
    {"COCO_TEST_PIECES", "1 or 0", "0", "tests only: no rank reads another one's private memory"},
    {"COCO_TEST_HOST", "a word", "unset", "tests only: all hosts look like one from outside"},
    {"COCO_TEST_LEARN", "1 or 0", "0", "tests only: learning changes its mind every few calls"},
};

// Before libc runs its constructors `environ` is null: then the kernel's copy is read, once.
const char* early_environment(std::size_t& size) {
    constexpr std::size_t kMost = 2 << 20;  // more than most kernels pass on; only what is used takes memory
    static char* buffer = nullptr;
    static std::size_t used = 0;
    if (buffer == nullptr) {
        void* mapped =
            kernel::mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) std::abort();
        buffer = static_cast<char*>(mapped);
        int fd = kernel::open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && used < kMost - 1) {
            ssize_t n = kernel::read(fd, buffer + used, kMost - 1 - used);
            if (n <= 0) break;
            used += static_cast<std::size_t>(n);
        }
        if (fd >= 0) kernel::close(fd);
    }
    size = used;
    return buffer;
}

// The value in "NAME=VALUE"; null if the name is another one.
const char* value_of(const char* entry, std::string_view name) {
    if (std::strncmp(entry, name.data(), name.size()) != 0 || entry[name.size()] != '=') return nullptr;
    return entry + name.size() + 1;
}

}  // namespace

std::span<const Setting> settings() { return kSettings; }

const Setting& setting(std::string_view name) {
    for (const Setting& s : kSettings)
        if (name == s.name) return s;
    std::abort();
}

std::string_view env(const char* name) {
    // What a program does with more rights than its user's (setuid, file capabilities) is not for its user to
    // say.
    if (getauxval(AT_SECURE) != 0) return {};
    std::string_view wanted(name);
    if (environ != nullptr) {
        for (char** entry = environ; *entry != nullptr; ++entry)
            if (const char* value = value_of(*entry, wanted)) return value;
        return {};
    }
    std::size_t size = 0;
    const char* block = early_environment(size);
    for (std::size_t at = 0; at < size;) {
        if (const char* value = value_of(block + at, wanted)) return value;
        at += std::strlen(block + at) + 1;
    }
    return {};
}

bool parse_number(std::string_view text, std::uint64_t& number) {
    if (text.empty()) return false;
    std::uint64_t value = 0;
    for (char c : text) {
        if (c < '0' || c > '9') return false;
        auto digit = static_cast<std::uint64_t>(c - '0');
        if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) return false;
        value = value * 10 + digit;
    }
    number = value;
    return true;
}

std::string bytes_text(std::uint64_t bytes) {
    constexpr std::string_view kUnits = "KMGT";
    std::string unit;
    for (char next : kUnits) {
        if (bytes == 0 || bytes % 1024 != 0) break;
        bytes /= 1024;
        unit = next;
    }
    return std::to_string(bytes) + unit;
}

bool parse_bytes(std::string_view text, std::uint64_t& bytes) {
    int shift = 0;
    if (!text.empty()) {
        constexpr std::string_view kUnits = "KMGT";
        char last = text.back() >= 'a' ? static_cast<char>(text.back() - 'a' + 'A') : text.back();
        if (auto at = kUnits.find(last); at != std::string_view::npos) {
            shift = 10 * (static_cast<int>(at) + 1);
            text.remove_suffix(1);
        }
    }
    std::uint64_t value = 0;
    if (!parse_number(text, value)) return false;
    if (value > (std::numeric_limits<std::uint64_t>::max() >> shift)) return false;
    bytes = value << shift;
    return true;
}

}  // namespace coco::base
