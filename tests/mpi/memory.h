// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of every kind that programs hand to MPI. Pools (static, stack) are small; what does not fit comes
// from mmap.
#pragma once
#include <mpi.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace test {

enum class Placement { heap, aligned, alloc_mem, fixed, stack, mapped, grown };
inline constexpr int kPlacements = 6;       // of which tests take all pairs; `grown` is of the heap, too
inline constexpr int kDrawnPlacements = 7;  // among which random tests draw

// A region of one call. Owns it; the pools are handed out as a stack, so regions die in reverse order.
class Region {
  public:
    static constexpr std::size_t kPoolBytes = 1 << 20;

    Region(Placement placement, std::size_t bytes) : placement_(placement), bytes_(bytes) {
        if (placement_ == Placement::fixed && fixed_used_ + bytes > kPoolBytes)
            placement_ = Placement::mapped;
        if (placement_ == Placement::stack && (stack_pool == nullptr || stack_used_ + bytes > kPoolBytes))
            placement_ = Placement::mapped;
        data_ = acquire();
        if (data_ == nullptr) std::abort();
    }
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;
    ~Region() { release(); }

    char* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }

    // kPoolBytes of main's stack frame, set by main.
    static inline char* stack_pool = nullptr;

  private:
    char* acquire() {
        void* p = nullptr;
        switch (placement_) {
            case Placement::heap:
                return static_cast<char*>(std::malloc(bytes_ + 1));
            case Placement::grown:
                p = std::malloc(bytes_ / 3 + 1);
                if (p != nullptr) std::memset(p, 'g', bytes_ / 3 + 1);
                return static_cast<char*>(std::realloc(p, bytes_ + 1));
            case Placement::aligned:
                return posix_memalign(&p, 4096, bytes_ + 1) == 0 ? static_cast<char*>(p) : nullptr;
            case Placement::alloc_mem:
                MPI_Alloc_mem(static_cast<MPI_Aint>(bytes_ + 1), MPI_INFO_NULL, &p);
                return static_cast<char*>(p);
            case Placement::fixed:
                return take(fixed_pool_, fixed_used_);
            case Placement::stack:
                return take(stack_pool, stack_used_);
            case Placement::mapped:
                p = mmap(nullptr, bytes_ + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
        }
        return nullptr;
    }
    void release() {
        switch (placement_) {
            case Placement::heap:
            case Placement::grown:
            case Placement::aligned:
                std::free(data_);
                break;
            case Placement::alloc_mem:
                MPI_Free_mem(data_);
                break;
            case Placement::fixed:
                fixed_used_ -= bytes_;
                break;
            case Placement::stack:
                stack_used_ -= bytes_;
                break;
            case Placement::mapped:
                munmap(data_, bytes_ + 1);
                break;
        }
    }
    char* take(char* pool, std::size_t& used) const {
        used += bytes_;
        return pool + used - bytes_;
    }

    alignas(64) static inline char fixed_pool_[kPoolBytes];
    static inline std::size_t fixed_used_ = 0, stack_used_ = 0;
    Placement placement_;
    std::size_t bytes_;
    char* data_ = nullptr;
};

// One step of a mixer: a good 64-bit hash of its argument.
inline std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// Random bytes. Their number is a prime, so that blocks of usual sizes do not begin at a multiple of it
// behind one another.
inline constexpr std::size_t kNoiseBytes = 65'521;
inline const char* noise() {
    static const std::vector<char> bytes = [] {
        std::vector<char> made(kNoiseBytes);
        for (std::size_t at = 0; at < made.size(); ++at) made[at] = static_cast<char>(mix(at) >> 32);
        return made;
    }();
    return bytes.data();
}

// Copies noise from a place that follows from the seed, which takes less time than to make new noise.
inline void fill(char* data, std::size_t bytes, std::uint64_t seed) {
    std::size_t from = mix(seed) % kNoiseBytes;
    for (std::size_t at = 0; at < bytes; from = 0) {
        const std::size_t part = std::min(bytes - at, kNoiseBytes - from);
        std::memcpy(data + at, noise() + from, part);
        at += part;
    }
}

}  // namespace test
