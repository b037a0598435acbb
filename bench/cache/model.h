// SPDX-License-Identifier: BSD-3-Clause
//
// The data caches of a machine: set-associative, least recently used goes first, a line that is missed is
// brought into each level that missed it. What a core writes, other cores lose. A line that was lost in this
// way and is missed for that is counted apart, too. Not modelled: time, misses of a write that only has to
// take a line from readers, and data that go on to memory. Used by replay.h. Thread safety: none.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace coco::cache {

struct Level {
    std::uint64_t bytes = 0;
    std::uint64_t ways = 1;
    bool shared = false;  // by the cores of a domain; else each core has one
};

struct Machine {
    std::string name;
    std::uint64_t cores = 1, domains = 1;
    std::vector<Level> levels;  // the nearest to the core first
    std::string source;         // where these figures are from
    std::uint64_t line_bytes = 64;
};
// The machines of the tables.
const std::vector<Machine>& machines();
// Returns: why there can be no such machine, in one line; empty: there can.
std::string wrong(const Machine& machine);

using Line = std::uint32_t;  // the number of a line of memory, below 2^31

// One cache.
class Cache {
  public:
    Cache(const Level& level, std::uint64_t line_bytes);
    enum class Found : std::uint8_t { here, lost, absent };
    // Makes a line the most recently used, and brings it in if it is not here. Returns: how it was found.
    Found touch(Line line);
    // Loses a line, if it is here, to a core that writes it.
    void lose(Line line);

  private:
    std::uint32_t* set_of(Line line) { return &entries_[line % sets_ * ways_]; }

    std::uint64_t ways_, sets_;
    std::vector<std::uint32_t> entries_;  // by set, the most recently used first; 0: none
};

struct Count {
    std::uint64_t missed = 0;
    std::uint64_t lost = 0;  // of these: because another core had written the line
    friend bool operator==(const Count&, const Count&) = default;
};

// The caches of all cores.
class Caches {
  public:
    // domain_of: of each core. lines: how many there are in memory. prefetched_lines: of a page, if a miss
    // also brings in the next line of the page, uncounted; else 0.
    Caches(const Machine& machine, std::vector<std::int32_t> domain_of, std::uint64_t lines,
           std::uint64_t prefetched_lines);
    void read(std::int32_t core, Line line);
    void write(std::int32_t core, Line line);
    void reset_counts() { counts_.assign(levels_.size(), {}); }
    // By level, of all cores together.
    const std::vector<Count>& counts() const { return counts_; }

  private:
    using Holder = std::uint16_t;
    static constexpr Holder kNobody = 0xFFFF, kMany = 0xFFFE;

    std::size_t part_of(std::size_t level, std::int32_t core) const;
    void fetch(std::int32_t core, Line line);
    void hold(std::int32_t core, Line line);
    void take_from(std::int32_t holder, std::int32_t writer, Line line);

    std::vector<Level> levels_;
    std::vector<std::int32_t> domain_of_;
    std::vector<std::vector<Cache>> caches_;  // by level; by core or domain
    std::vector<Holder> holders_;             // by line: the core that has it, if it is only one
    std::vector<Count> counts_;
    std::uint64_t prefetched_lines_;
};

}  // namespace coco::cache
