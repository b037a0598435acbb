// SPDX-License-Identifier: BSD-3-Clause
#include "exec/copy_block.h"

#include <immintrin.h>

namespace coco::exec {
namespace {

constexpr std::size_t kLine = 64;

void stream_sse2(std::byte* target, const std::byte* source, std::size_t lines) {
    for (std::size_t i = 0; i < lines; ++i, target += kLine, source += kLine)
        for (int part = 0; part < 4; ++part) {
            __m128i value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source) + part);
            _mm_stream_si128(reinterpret_cast<__m128i*>(target) + part, value);
        }
}

__attribute__((target("avx"))) void stream_avx(std::byte* target, const std::byte* source,
                                               std::size_t lines) {
    for (std::size_t i = 0; i < lines; ++i, target += kLine, source += kLine) {
        __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
        __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source) + 1);
        _mm256_stream_si256(reinterpret_cast<__m256i*>(target), low);
        _mm256_stream_si256(reinterpret_cast<__m256i*>(target) + 1, high);
    }
}

using Stream = void (*)(std::byte*, const std::byte*, std::size_t);

Stream best_stream() { return __builtin_cpu_supports("avx") ? stream_avx : stream_sse2; }

}  // namespace

void copy_streaming(std::byte* target, const std::byte* source, std::size_t bytes) {
    static const Stream stream = best_stream();
    std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(target) % kLine) % kLine;
    if (bytes < 16 * kLine || target == source)
        return copy_block(target, source, target == source ? 0 : bytes);
    std::memcpy(target, source, head);
    std::size_t lines = (bytes - head) / kLine;
    stream(target + head, source + head, lines);
    std::size_t done = head + lines * kLine;
    std::memcpy(target + done, source + done, bytes - done);
    // Streaming stores are not ordered by the release that will publish them.
    _mm_sfence();
}

}  // namespace coco::exec
