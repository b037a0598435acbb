// SPDX-License-Identifier: BSD-3-Clause
//
// One collective with blocks of one size, as a program calls it again and again: buffers from malloc, and the
// call through libcoco's door. Called by tune_session.cc and tune_measure.cc, by all ranks alike. Thread
// safety: one thread. Fails: without memory, false from has_memory().
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tools/tune_job.h"

namespace coco::tools {

// Who calls: a communicator, and how many blocks a rank has for it, or gets.
struct Callers {
    mpi::Comm comm;
    int blocks = 0;  // one for each rank, or for each neighbour
};

class Calls {
  public:
    // What both buffers of a rank take.
    static std::uint64_t bytes_of(algorithms::Collective collective, std::uint64_t block_bytes, int blocks);
    // Whether MPI's counts and displacements, which are ints, can say it.
    static bool fit_ints(std::uint64_t block_bytes, int blocks);

    Calls(const Job& job, algorithms::Collective collective, std::uint64_t block_bytes,
          const Callers& callers);
    Calls(const Calls&) = delete;
    Calls& operator=(const Calls&) = delete;

    const Job& job() const { return job_; }
    bool has_memory() const { return send_.at != nullptr && recv_.at != nullptr; }
    // From the next call on they go by this choice.
    void choose(const policy::Choice& choice) const;
    void make() const;
    // Writes to what this rank sends, as programs do between calls.
    void write() const;
    // Empties the caches of the buffers, then writes to them: they come back to this rank's caches alone.
    void cool() const;

  private:
    struct Freeing {
        void operator()(char* at) const { std::free(at); }
    };
    struct Buffer {
        explicit Buffer(std::size_t size);
        std::size_t bytes;
        std::unique_ptr<char, Freeing> at;
    };

    const Job& job_;
    const algorithms::Collective collective_;
    const mpi::Comm comm_;
    const int count_;  // the bytes of a block
    Buffer send_, recv_;
    std::vector<int> counts_, starts_;
    std::vector<mpi::Aint> byte_starts_;
    mpi::Handles<mpi::Datatype> types_;
    const void* types_at_;  // the same, as MPI takes them
};

}  // namespace coco::tools
