// SPDX-License-Identifier: BSD-3-Clause
// The promises of malloc's family, as a list of outcomes on stdout, without addresses: contract.sh compares
// the list of the C library with ours. usage: contract [shared]: blocks must lie on the shared heap
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "expect.h"

namespace {

using std::size_t;

bool is_aligned(const void* p, size_t to) { return reinterpret_cast<std::uintptr_t>(p) % to == 0; }

const char* error_name(int error) {
    return error == ENOMEM ? "ENOMEM" : error == EINVAL ? "EINVAL" : error == 77 ? "kept" : "other";
}

// Says whether a call made a block, and what became of errno.
template <class Make>
void tell(const char* what, size_t n, Make make) {
    errno = 77;
    void* block = make();
    int error = errno;
    std::printf("%s %zu: %s, errno %s\n", what, n, block != nullptr ? "a block" : "null", error_name(error));
    errno = 77;
    free(block);
    if (errno != 77) std::printf("%s %zu: free wrote errno\n", what, n);
}

void* by_posix(size_t alignment, size_t n) {
    void* block = nullptr;
    int error = posix_memalign(&block, alignment, n);
    if (error != 0) std::printf("posix_memalign returns %s\n", error_name(error));
    errno = 77;  // which it may have written, or not
    return error == 0 ? block : nullptr;
}

void tell_all(size_t n) {
    tell("malloc", n, [=] { return malloc(n); });
    tell("calloc of bytes", n, [=] { return calloc(n, 1); });
    tell("calloc of one", n, [=] { return calloc(1, n); });
    tell("calloc of pairs", n, [=] { return calloc(n, 2); });
    tell("realloc of none", n, [=] { return realloc(nullptr, n); });
    tell("reallocarray of none", n, [=] { return reallocarray(nullptr, n, 3); });
    tell("memalign 8", n, [=] { return memalign(8, n); });
    tell("memalign 64", n, [=] { return memalign(64, n); });
    tell("memalign 1 MiB", n, [=] { return memalign(1 << 20, n); });
    tell("aligned_alloc 64", n, [=] { return aligned_alloc(64, n); });
    tell("posix_memalign 64", n, [=] { return by_posix(64, n); });
    tell("valloc", n, [=] { return valloc(n); });
    tell("pvalloc", n, [=] { return pvalloc(n); });
    tell("new", n, [=] { return ::operator new(n, std::nothrow); });
    if (n < SIZE_MAX - 4096)  // beyond, some versions of libstdc++ round up to no bytes
        tell("aligned new", n, [=] { return ::operator new (n, std::align_val_t{128}, std::nothrow); });
}

// A block survives a realloc that is refused; one of no bytes frees it.
void tell_reallocs(size_t n) {
    for (size_t old : {10u, 5000u, 3000000u}) {
        auto* block = static_cast<unsigned char*>(malloc(old));
        std::memset(block, 5, old);
        errno = 77;
        void* moved = realloc(block, n);
        std::printf("realloc of %zu to %zu: %s, errno %s\n", old, n, moved != nullptr ? "a block" : "null",
                    error_name(errno));
        if (moved != nullptr || n == 0) {
            free(moved);
            continue;
        }
        EXPECT(block[0] == 5 && block[old - 1] == 5);
        free(block);
    }
}

void tell_alignments() {
    for (size_t a : {size_t{0}, size_t{1}, size_t{3}, size_t{7}, size_t{8}, size_t{12}, size_t{24},
                     size_t{48}, size_t{100}, size_t{1000}, size_t{4095}, size_t{4097}, size_t{1} << 20,
                     size_t{1} << 62, SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 2, SIZE_MAX}) {
        tell("memalign of 100 bytes to", a, [=] { return memalign(a, 100); });
        tell("aligned_alloc of 100 bytes to", a, [=] { return aligned_alloc(a, 100); });
        tell("posix_memalign of 100 bytes to", a, [=] { return by_posix(a, 100); });
        if (a == 0 || a > size_t{1} << 20) continue;
        void* block = memalign(a, 100);
        size_t power = 1;
        while (power < a) power *= 2;
        std::printf("memalign to %zu: %s\n", a, is_aligned(block, power) ? "aligned" : "not aligned");
        free(block);
    }
}

template <class Make>
void tell_misaligned(const char* what, Make make) {
    int misaligned = 0, short_of = 0;
    for (size_t n = 0; n <= 4096; ++n) {
        void* block = make(n);
        misaligned += !is_aligned(block, 16);
        short_of += malloc_usable_size(block) < n;
        std::memset(block, 1, malloc_usable_size(block));
        free(block);
    }
    std::printf("%s: %d misaligned, %d short of bytes\n", what, misaligned, short_of);
}

void tell_each_size() {
    tell_misaligned("malloc", [](size_t n) { return malloc(n); });
    tell_misaligned("calloc", [](size_t n) { return calloc(n, 1); });
    tell_misaligned("realloc", [](size_t n) { return n == 0 ? malloc(0) : realloc(malloc(100), n); });
    tell_misaligned("realloc of none", [](size_t n) { return realloc(nullptr, n); });
    tell_misaligned("memalign", [](size_t n) { return memalign(8, n); });
    tell_misaligned("aligned_alloc", [](size_t n) { return aligned_alloc(1, n); });
    tell_misaligned("posix_memalign", [](size_t n) { return by_posix(8, n); });
    tell_misaligned("new", [](size_t n) { return ::operator new(n); });
    tell_misaligned("aligned new", [](size_t n) { return ::operator new (n, std::align_val_t{8}); });
}

void check_growth() {
    unsigned char* block = nullptr;
    size_t filled = 0;
    for (size_t n :
         {1u, 8u, 9u, 17u, 100u, 4097u, 70000u, 300000u, 3000000u, 40000000u, 90000000u, 5000000u, 10u}) {
        block = static_cast<unsigned char*>(realloc(block, n));
        for (size_t i = 0; i < std::min(filled, n); i += 1 + i / 50) EXPECT(block[i] == i % 251);
        for (size_t i = 0; i < n; ++i) block[i] = static_cast<unsigned char>(i % 251);
        filled = n;
    }
    free(block);
}

void check_zeros() {
    for (size_t n = 1; n < 80u << 20; n = n * 3 + 1)
        for (int turn = 0; turn < 3; ++turn) {
            void* dirty = malloc(n);
            std::memset(dirty, 0xa5, n);
            free(dirty);
            auto* zeros = static_cast<unsigned char*>(calloc(1, n));
            for (size_t i = 0; i < n; ++i)
                if (zeros[i] != 0) {
                    EXPECT(zeros[i] == 0);
                    break;
                }
            std::memset(zeros, 0x5a, n);
            free(zeros);
        }
}

// Blocks of threads that have ended, and blocks that others free.
void check_threads() {
    std::vector<void*> blocks(4000);
    for (int turn = 0; turn < 20; ++turn) {
        std::thread([&] {
            for (size_t i = 0; i < blocks.size(); ++i)
                blocks[i] = std::memset(malloc(i * 7 + 1), turn, i * 7 + 1);
        }).join();
        std::thread([&] {
            for (size_t i = 0; i < blocks.size(); i += 2) free(blocks[i]);
        }).join();
        for (size_t i = 1; i < blocks.size(); i += 2) {
            EXPECT(static_cast<unsigned char*>(blocks[i])[i * 7] == turn);
            free(blocks[i]);
        }
    }
}

// A program that takes what it can get, in sizes that halve.
void tell_greedy() {
    int log2 = 62;
    void* block = nullptr;
    while (log2 > 20 && (block = malloc(size_t{1} << log2)) == nullptr) --log2;
    std::printf("the largest power of two is 2^%d\n", log2);
    free(block);
}

void tell_figures() {
    std::vector<void*> blocks;
    struct mallinfo2 before = mallinfo2();
    int before_by_ints = mallinfo().uordblks;
    for (int i = 0; i < 20000; ++i) blocks.push_back(std::memset(malloc(1000), 1, 1000));
    struct mallinfo2 amid = mallinfo2();
    std::printf("mallinfo2 grows: %d, adds up: %d, mallinfo grows: %d\n",
                amid.uordblks >= before.uordblks + 20000000, amid.arena == amid.uordblks + amid.fordblks,
                mallinfo().uordblks >= before_by_ints + 20000000);
    for (void* block : blocks) free(block);
    std::printf("mallinfo2 shrinks: %d\n", mallinfo2().uordblks + 15000000 < amid.uordblks);
    blocks.clear();
    for (int i = 0; i < 200; ++i) blocks.push_back(std::memset(malloc(100000), 1, 100000));
    void* last = malloc(100);
    for (void* block : blocks) free(block);
    std::printf("malloc_trim gives back: %d\n", malloc_trim(0));
    free(last);
    char text[16384] = {};
    std::FILE* file = fmemopen(text, sizeof text, "w");
    std::printf("malloc_info: %d", malloc_info(0, file));
    std::fclose(file);
    std::printf(", begins well: %d, ends well: %d, of 1: %d\n",
                std::strncmp(text, "<malloc version=\"1\">", 20) == 0,
                std::strstr(text, "</malloc>\n") != nullptr, malloc_info(1, stdout) == EINVAL);
    malloc_stats();
    for (int parameter :
         {M_MXFAST, M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX, 1000})
        for (int value : {1, 64, 1000, 1 << 30})
            std::printf("mallopt(%d, %d): %d\n", parameter, value, mallopt(parameter, value));
}

}  // namespace

int main(int count, char**) {
    void* first = malloc(1);
    EXPECT(lies_on_shared_heap(first) == (count > 1));
    free(first);
    free(nullptr);
    EXPECT(malloc_usable_size(nullptr) == 0);
    constexpr size_t kMost = PTRDIFF_MAX;
    for (size_t n : {size_t{0}, size_t{1}, size_t{100}, size_t{100000}, size_t{40} << 20, size_t{32} << 40,
                     size_t{1} << 47, kMost / 2, kMost - 4096, kMost - 1, kMost, kMost + 1, SIZE_MAX - 4096,
                     SIZE_MAX - 15, SIZE_MAX}) {
        tell_all(n);
        tell_reallocs(n);
    }
    tell_alignments();
    tell_each_size();
    check_growth();
    check_zeros();
    check_threads();
    tell_greedy();
    tell_figures();
    return failures();
}
