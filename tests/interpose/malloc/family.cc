// SPDX-License-Identifier: BSD-3-Clause
// Every function of the malloc family as glibc documents it: alignment, errno, contents across realloc,
// threads.
// usage: family [libcs]: the whole family is the C library's, whose failing posix_memalign writes errno.
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "expect.h"

namespace {

bool is_aligned(const void* p, std::size_t to) { return reinterpret_cast<std::uintptr_t>(p) % to == 0; }
bool g_is_libcs = false;
volatile std::size_t g_huge = SIZE_MAX / 2;  // volatile: the compiler must not judge the size

void check_sizes() {
    for (std::size_t n : {0ul, 1ul, 15ul, 16ul, 100ul, 4096ul, 65536ul, 3000000ul, 70000000ul}) {
        auto* p = static_cast<unsigned char*>(malloc(n));
        EXPECT(p != nullptr && is_aligned(p, n >= 16 ? 16 : 8) && malloc_usable_size(p) >= n);
        std::memset(p, 0xa5, malloc_usable_size(p));
        errno = 77;
        free(p);
        EXPECT(errno == 77);
        auto* zeroed = static_cast<unsigned char*>(calloc(n + 1, 1));
        EXPECT(zeroed[0] == 0 && zeroed[n / 2] == 0 && zeroed[n] == 0);
        free(zeroed);
    }
    free(nullptr);
    EXPECT(malloc_usable_size(nullptr) == 0);
}

void check_alignment() {
    for (std::size_t a = sizeof(void*); a <= (4u << 20); a *= 2)
        for (std::size_t n : {1ul, 1000ul, 100000ul}) {
            void* p = nullptr;
            EXPECT(posix_memalign(&p, a, n) == 0 && is_aligned(p, a));
            free(p);
            for (void* q : {memalign(a, n), aligned_alloc(a, n)}) {
                EXPECT(q != nullptr && is_aligned(q, a));
                free(q);
            }
        }
    void* untouched = &untouched;
    errno = 77;
    EXPECT(posix_memalign(&untouched, 24, 8) == EINVAL && posix_memalign(&untouched, 4, 8) == EINVAL);
    EXPECT(posix_memalign(&untouched, 64, g_huge) == ENOMEM);
    EXPECT(untouched == &untouched && (g_is_libcs || errno == 77));
    auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* v = valloc(10);
    void* w = pvalloc(10);
    EXPECT(is_aligned(v, page) && is_aligned(w, page) && malloc_usable_size(w) >= page);
    free(v);
    free(w);
}

void check_refusals() {
    errno = 0;
    EXPECT(malloc(g_huge) == nullptr && errno == ENOMEM);
    errno = 0;
    EXPECT(calloc(g_huge, 4) == nullptr && errno == ENOMEM);
    errno = 0;
    EXPECT(reallocarray(nullptr, g_huge, 4) == nullptr && errno == ENOMEM);
    errno = 0;
    EXPECT(pvalloc(SIZE_MAX - g_huge + g_huge) == nullptr && errno == ENOMEM);
    bool threw = false;
    try {
        ::operator delete(::operator new(g_huge));
    } catch (const std::bad_alloc&) {
        threw = true;
    }
    EXPECT(threw);
    EXPECT(::operator new(g_huge, std::nothrow) == nullptr);
    EXPECT(::operator new (g_huge, std::align_val_t{64}, std::nothrow) == nullptr);
}

void check_realloc() {
    auto* p = static_cast<unsigned char*>(realloc(nullptr, 10));
    for (std::size_t i = 0; i < 10; ++i) p[i] = static_cast<unsigned char>(i);
    for (std::size_t n : {100ul, 5000ul, 3000000ul, 50000000ul, 200ul, 10ul}) {
        p = static_cast<unsigned char*>(realloc(p, n));
        for (std::size_t i = 0; i < 10; ++i) EXPECT(p[i] == i);
        p[n - 1] = n > 10 ? 1 : p[n - 1];
    }
    EXPECT(realloc(p, g_huge) == nullptr && p[9] == 9);  // a refused realloc leaves the block
    EXPECT(realloc(p, 0) == nullptr);                    // frees, as glibc
}

void check_operators() {
    struct alignas(256) Wide {
        char data[300];
    };
    auto* one = new Wide;
    auto* many = new Wide[7];
    EXPECT(is_aligned(one, 256) && is_aligned(many, 256));
    delete one;
    delete[] many;
    auto* words = new (std::nothrow) long[1000];
    EXPECT(words != nullptr);
    delete[] words;
}

// Blocks made in one thread and freed in another keep their contents.
void stress(unsigned seed, std::vector<std::vector<unsigned char*>>& handed) {
    std::mt19937 random(seed);
    std::vector<std::pair<unsigned char*, std::size_t>> live;
    for (int i = 0; i < 60000; ++i) {
        if (live.size() > 300 || (!live.empty() && random() % 3 == 0)) {
            std::size_t at = random() % live.size();
            auto [p, n] = live[at];
            EXPECT(p[0] == static_cast<unsigned char>(n) && p[n - 1] == static_cast<unsigned char>(n));
            free(p);
            live[at] = live.back();
            live.pop_back();
        } else {
            std::size_t n = 1 + random() % (random() % 50 == 0 ? 200000 : 500);
            auto* p = static_cast<unsigned char*>(malloc(n));
            p[0] = p[n - 1] = static_cast<unsigned char>(n);
            live.emplace_back(p, n);
        }
    }
    for (auto [p, n] : live) handed[seed].push_back(p);
}

void check_threads() {
    std::vector<std::vector<unsigned char*>> handed(8);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 8; ++t) threads.emplace_back(stress, t, std::ref(handed));
    for (auto& t : threads) t.join();
    for (auto& blocks : handed)
        for (auto* p : blocks) free(p);
}

}  // namespace

int main(int count, char**) {
    g_is_libcs = count > 1;
    check_sizes();
    check_alignment();
    check_refusals();
    check_realloc();
    check_operators();
    check_threads();
    return failures();
}
