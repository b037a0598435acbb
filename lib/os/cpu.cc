// SPDX-License-Identifier: BSD-3-Clause
#include "os/cpu.h"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace coco::os {
namespace {

#if defined(__x86_64__)

void stream_sse2(std::byte* target, const std::byte* source, std::size_t lines) {
    for (std::size_t i = 0; i < lines; ++i, target += kStreamedBytes, source += kStreamedBytes)
        for (int part = 0; part < 4; ++part) {
            __m128i value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source) + part);
            _mm_stream_si128(reinterpret_cast<__m128i*>(target) + part, value);
        }
}

__attribute__((target("avx"))) void stream_avx(std::byte* target, const std::byte* source,
                                               std::size_t lines) {
    for (std::size_t i = 0; i < lines; ++i, target += kStreamedBytes, source += kStreamedBytes) {
        __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
        __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source) + 1);
        _mm256_stream_si256(reinterpret_cast<__m256i*>(target), low);
        _mm256_stream_si256(reinterpret_cast<__m256i*>(target) + 1, high);
    }
}

using Stream = void (*)(std::byte*, const std::byte*, std::size_t);
Stream best_stream() { return __builtin_cpu_supports("avx") ? stream_avx : stream_sse2; }

#endif

}  // namespace

void stream_lines(std::byte* target, const std::byte* source, std::size_t lines) {
#if defined(__x86_64__)
    static const Stream stream = best_stream();
    stream(target, source, lines);
#elif defined(__aarch64__)
    // Non-temporal pairs: a hint, by which some cores keep the lines out of their caches. Such a load may
    // pass the one that its address depends on, and so must come after an acquire: all that peers publish is
    // read by one.
    for (std::size_t i = 0; i < lines; ++i, target += kStreamedBytes, source += kStreamedBytes)
        __asm__ volatile(
            "ldnp q0, q1, [%1]\n\tldnp q2, q3, [%1, #32]\n\t"
            "stnp q0, q1, [%0]\n\tstnp q2, q3, [%0, #32]" ::"r"(target),
            "r"(source)
            : "v0", "v1", "v2", "v3", "memory");
#else
    std::memcpy(target, source, lines * kStreamedBytes);
#endif
}

// On x86 streaming stores pass later ones, releases too. On ARM they are ordered like all others, by the
// release that publishes them.
void end_streaming() {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

}  // namespace coco::os
