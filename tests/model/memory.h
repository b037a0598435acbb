// SPDX-License-Identifier: BSD-3-Clause
//
// The memory of a run. What threads share lies in one region, zeros in the beginning, with a part for each
// rank; what they allocate for themselves comes from an arena. Both are as new at the begin of each run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace coco::model {

constexpr std::size_t kCellBytes = 4;  // locations and races are told apart by cells
constexpr std::size_t kRankBytes = 64 * 1024;
constexpr std::size_t kRanksMost = 3;
constexpr std::size_t kCells = kRanksMost * kRankBytes / kCellBytes;

void renew_memory();
// The begin of a rank's part.
std::byte* shared_memory_of(int rank);
// Zeros in a rank's part.
void* take_shared(int rank, std::size_t bytes, std::size_t alignment);
// Which cell an address is in; -1: it is not shared.
int cell_of(const volatile void* address);

template <class T, class... Arguments>
T* make_shared_of(int rank, Arguments&&... arguments) {
    return new (take_shared(rank, sizeof(T), alignof(T))) T{std::forward<Arguments>(arguments)...};
}

// While one lives allocations are the engine's, which outlive the run.
class OutsideRun {
  public:
    OutsideRun();
    ~OutsideRun();

  private:
    bool was_inside_;
};
// From now on, until the run ends, allocations come from the arena.
void enter_run();
void leave_run();

}  // namespace coco::model
