// SPDX-License-Identifier: BSD-3-Clause
//
// Finds races on what is read and written without atomics: of two accesses to a cell by different threads,
// one of them a write and not both atomic, one has to happen before the other. As a run goes along program
// order and reads-from, an access that does not know of the last conflicting one is a race, and without races
// each load of plain memory finds the value that the C++ model says.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graph.h"
#include "memory.h"

namespace coco::model {

class Races {
  public:
    enum class Access : std::uint8_t { read, write, atomic_read, atomic_write };
    // A new run: nothing has been accessed.
    void begin();
    // known: so many atomic operations of each thread happen before this access. Returns: what is wrong;
    // empty: nothing.
    std::string note(int thread, const Clock& known, int cell, std::size_t cells, Access access);

  private:
    // When each thread did this last: its number of atomic operations by then, plus 1; 0: never.
    using Last = std::array<std::uint16_t, kThreadsMost>;
    struct Cell {
        std::uint64_t run = 0;
        Last of[4]{};
    };
    std::uint64_t run_ = 0;
    std::vector<Cell> cells_ = std::vector<Cell>(kCells);
};

}  // namespace coco::model
