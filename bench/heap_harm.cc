// SPDX-License-Identifier: BSD-3-Clause
//
// The cost of the heap to a program that knows nothing of us: run it with and without the preload and compare.
//   heap_harm [REPEATS]     one line a measurement, the best of REPEATS (default 7)
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <vector>

namespace {

// Processor time of this process: others on the machine do not count.
double now_s() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double seconds(const std::function<void()>& work) {
    double begin = now_s();
    work();
    return now_s() - begin;
}

void measure(const char* name, int repeats, const char* unit, double units,
             const std::function<void()>& work) {
    double best = 1e30;
    for (int i = 0; i < repeats; ++i) best = std::min(best, seconds(work));
    std::printf("%-28s %10.2f ns/%s\n", name, best * 1e9 / units, unit);
}

void pairs(std::size_t bytes) {
    for (int i = 0; i < 5'000'000; ++i) {
        void* block = std::malloc(bytes);
        asm volatile("" ::"r"(block) : "memory");
        std::free(block);
    }
}

// A live set of 20,000 blocks of 16 B to 64 KiB, mostly small, replaced at random.
void mixed() {
    static std::vector<void*> live(20000);
    std::minstd_rand random(1);
    for (int i = 0; i < 2'000'000; ++i) {
        void*& block = live[random() % live.size()];
        std::free(block);
        std::size_t bytes = 16u << (random() % (random() % 16 == 0 ? 12 : 5));
        block = std::malloc(bytes);
        std::memset(block, 1, 16);
    }
}

constexpr std::size_t kArray = 256u << 20;

void touch(std::size_t bytes) {
    char* block = static_cast<char*>(std::malloc(bytes));
    for (std::size_t i = 0; i < bytes; i += 4096) block[i] = 1;
    asm volatile("" ::"r"(block) : "memory");
    std::free(block);
}

// Several blocks at a time, of different sizes, as the temporary arrays of a function.
void alternate() {
    char* blocks[3];
    for (std::size_t i = 0; i < 3; ++i) {
        blocks[i] = static_cast<char*>(std::malloc((40u + 10 * i) << 20));
        for (std::size_t at = 0; at < (40u + 10 * i) << 20; at += 4096) blocks[i][at] = 1;
        asm volatile("" ::"r"(blocks[i]) : "memory");
    }
    for (char* block : blocks) std::free(block);
}

// A buffer that grows by a quarter each time, as it is filled.
void grow() {
    char* block = nullptr;
    std::size_t filled = 0;
    for (std::size_t bytes = 1u << 20; bytes < kArray; bytes += bytes / 4) {
        block = static_cast<char*>(std::realloc(block, bytes));
        for (; filled < bytes; filled += 4096) block[filled] = 1;
        asm volatile("" ::"r"(block) : "memory");
    }
    std::free(block);
}

struct Arrays {
    double* a = static_cast<double*>(std::malloc(kArray));
    double* b = static_cast<double*>(std::malloc(kArray));
    double* c = static_cast<double*>(std::malloc(kArray));
    std::size_t n = kArray / sizeof(double);
    void triad() const {
        for (std::size_t i = 0; i < n; ++i) a[i] = b[i] + 3.0 * c[i];
    }
    // A read that jumps between pages: what address translation costs.
    double jumps() const {
        double sum = 0;
        std::minstd_rand random(1);
        for (int i = 0; i < 2'000'000; ++i) sum += b[random() * 16807ull % n];
        return sum;
    }
};

}  // namespace

int main(int count, char** arguments) {
    int repeats = count > 1 ? std::atoi(arguments[1]) : 7;
    if (count > 2 || repeats < 1) {
        std::fprintf(stderr, "usage: heap_harm [REPEATS]   at least 1, 7 if not given\n");
        return 2;
    }
    measure("malloc+free 64 B", repeats, "pair", 5e6, [] { pairs(64); });
    measure("malloc+free 4 KiB", repeats, "pair", 5e6, [] { pairs(4096); });
    measure("malloc+free 100 KB", repeats, "pair", 5e6, [] { pairs(100000); });
    measure("mixed sizes", repeats, "replacement", 2e6, mixed);
    measure("touch and free 8 MiB", repeats, "page", 2048, [] { touch(8u << 20); });
    measure("touch and free 32 MiB", repeats, "page", 8192, [] { touch(32u << 20); });
    measure("touch and free 64 MiB", repeats, "page", 16384, [] { touch(64u << 20); });
    measure("touch and free 256 MiB", repeats, "page", 65536, [] { touch(kArray); });
    measure("touch and free 512 MiB", repeats, "page", 131072, [] { touch(2 * kArray); });
    measure("three of 40 to 60 MiB", repeats, "page", 38400, alternate);
    measure("grow to 256 MiB by realloc", repeats, "page", 65536, grow);
    Arrays arrays;
    for (double* x : {arrays.a, arrays.b, arrays.c}) std::memset(x, 1, kArray);
    double sink = 0;
    measure("triad 3 x 256 MiB", repeats, "element", static_cast<double>(arrays.n), [&] { arrays.triad(); });
    measure("random reads in 256 MiB", repeats, "read", 2e6, [&] { sink += arrays.jumps(); });
    return sink == 1.5;
}
