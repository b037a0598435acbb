// SPDX-License-Identifier: BSD-3-Clause
//
// The cost of the heap to a program that knows nothing of us: run it with and without the preload and
// compare.
//   heap_harm [REPEATS]     one line a measurement, the best of REPEATS (default 7); needs 5 GiB of memory
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <vector>

namespace {

double now_s(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double seconds(const std::function<void()>& work, clockid_t clock) {
    double begin = now_s(clock);
    work();
    return now_s(clock) - begin;
}

// Processor time of this process, unless the clock is another one: other processes on the machine do not
// count.
void measure(const char* name, int repeats, const char* unit, double units, const std::function<void()>& work,
             clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
    double best = 1e30;
    for (int i = 0; i < repeats; ++i) best = std::min(best, seconds(work, clock));
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
};

// Reads that jump between pages: what address translation costs.
double jumps(const double* array, std::size_t n) {
    double sum = 0;
    std::minstd_rand random(1);
    for (int i = 0; i < 2'000'000; ++i) sum += array[random() * 16807ull % n];
    return sum;
}

void start_another_program() {
    const pid_t child = fork();
    if (child == 0) {
        execl("/bin/true", "true", static_cast<char*>(nullptr));
        _exit(1);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        std::perror("heap_harm: /bin/true did not run");
        std::exit(1);
    }
}

// Fork and exec where most memory is in large blocks, and where it is in small ones.
void measure_forks(int repeats) {
    constexpr std::size_t kLarge = std::size_t{2} << 30, kSmall = 256;
    char* large = static_cast<char*>(std::malloc(kLarge));
    std::memset(large, 1, kLarge);
    measure("fork and exec, 2 GiB large", repeats, "start", 1, start_another_program, CLOCK_MONOTONIC);
    std::free(large);
    std::vector<void*> small((std::size_t{512} << 20) / kSmall);
    for (void*& block : small) block = std::memset(std::malloc(kSmall), 1, kSmall);
    measure("fork and exec, 512 MiB small", repeats, "start", 1, start_another_program, CLOCK_MONOTONIC);
    for (void* block : small) std::free(block);
}

double measure_jumps(int repeats) {
    constexpr std::size_t kBytes = std::size_t{4} << 30;
    auto* array = static_cast<double*>(std::malloc(kBytes));
    std::memset(array, 1, kBytes);
    double sum = 0;
    measure("random reads in 4 GiB", repeats, "read", 2e6,
            [&] { sum += jumps(array, kBytes / sizeof *array); });
    std::free(array);
    return sum;
}

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
    measure("malloc+free 300 KB", repeats, "pair", 5e6, [] { pairs(300000); });
    measure("malloc+free 2 MB", repeats, "pair", 5e6, [] { pairs(2000000); });
    measure("mixed sizes", repeats, "replacement", 2e6, mixed);
    measure("touch and free 1 MiB", repeats, "page", 256, [] { touch(1u << 20); });
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
    measure("random reads in 256 MiB", repeats, "read", 2e6, [&] { sink += jumps(arrays.b, arrays.n); });
    for (double* x : {arrays.a, arrays.b, arrays.c}) std::free(x);
    sink += measure_jumps(repeats);
    measure_forks(repeats);
    return sink == 1.5;
}
