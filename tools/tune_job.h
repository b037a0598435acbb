// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI job that `coco tune` is in its second life: libcoco and an MPI library are preloaded. Its
// collectives go through libcoco's doors, as a program's do; barriers and agreements go to the MPI library's
// own functions. Called by tune_session.cc and those below it, by all ranks alike. Thread safety: one thread.
// Fails: start() says why in one line; MPI's own errors end the job.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "mpi/library.h"
#include "policy/policy.h"

namespace coco::tools {

class Job {
  public:
    // Begins MPI. Returns: null, for the reason in `why`.
    static std::unique_ptr<Job> start(std::string& why);
    // Ends MPI.
    ~Job();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    int rank() const { return rank_; }
    int ranks() const { return ranks_; }
    mpi::Comm world() const { return mpi::lib().comm_world; }
    // The functions that programs call: libcoco's.
    const mpi::Library& doors() const { return doors_; }
    // A periodic grid of two dimensions over all ranks. Returns: in `neighbors` how many a rank has.
    mpi::Comm make_torus(int& neighbors) const;

    void barrier() const { mpi::lib().Barrier(world()); }
    // Replaces each number by the largest on any rank.
    void agree_on_largest(std::span<std::uint64_t> numbers) const;
    // Replaces the number by rank 0's.
    void tell_from_rank_0(std::uint64_t& number) const;

    // From the next call on the collective goes by this choice ("mpi", "morton", ...) on the communicator;
    // empty: by the policy. Returns: whether the communicator is set up.
    bool choose(mpi::Comm comm, algorithms::Collective collective, const std::string& choice) const;
    // The communicator's facts. Returns: whether it is set up.
    bool facts_of(mpi::Comm comm, policy::Facts& facts) const;

    // Whether this process was asked to end (SIGINT, SIGTERM, SIGHUP).
    static bool is_asked_to_end();

  private:
    Job() = default;

    mpi::Library doors_{};
    int (*choose_)(const void* comm, const char* collective, const char* choice) = nullptr;
    int (*facts_)(const void* comm, std::int64_t* facts) = nullptr;
    int (*dims_create_)(int ranks, int dimensions, int* sizes) = nullptr;
    int rank_ = 0, ranks_ = 1;
    bool is_started_ = false;
};

}  // namespace coco::tools
