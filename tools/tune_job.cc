// SPDX-License-Identifier: BSD-3-Clause
#include "tools/tune_job.h"

#include <dlfcn.h>

#include <atomic>
#include <csignal>
#include <vector>

#include "os/symbols.h"

namespace coco::tools {
namespace {

volatile std::sig_atomic_t g_asked_to_end = 0;

void note_signal(int) { g_asked_to_end = 1; }

void catch_signals() {
    struct sigaction action {};
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

template <class Function>
bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
    return function != nullptr;
}

// The MPI functions in the global scope, where libcoco comes first. Large-count forms may be missing.
bool find_doors(mpi::Library& doors) {
    bool has_all = true;
#define COCO_TUNE_FIND(name, parameters) has_all = find(doors.name, "MPI_" #name) && has_all;
    COCO_MPI_FUNCTIONS(COCO_TUNE_FIND)
#undef COCO_TUNE_FIND
    return has_all;
}

}  // namespace

std::unique_ptr<Job> Job::start(std::string& why) {
    std::unique_ptr<Job> job(new Job);
    const os::Object libcoco = os::definer("coco_version");
    if (libcoco == nullptr || mpi::served_beside(libcoco) == nullptr) {
        why = "the loader could not preload them";
        return nullptr;
    }
    if (!find(job->choose_, "coco_choose") || !find(job->facts_, "coco_facts") || !find_doors(job->doors_) ||
        !find(job->dims_create_, "MPI_Dims_create")) {
        why = "libcoco.so is not of this command's version, or the MPI library lacks functions";
        return nullptr;
    }
    job->doors_.Init(nullptr, nullptr);
    job->is_started_ = true;
    mpi::lib().Comm_rank(job->world(), &job->rank_);
    mpi::lib().Comm_size(job->world(), &job->ranks_);
    catch_signals();
    return job;
}

Job::~Job() {
    if (is_started_) doors_.Finalize();
}

mpi::Comm Job::make_torus(int& neighbors) const {
    constexpr int kDimensions = 2;
    int sizes[kDimensions] = {};
    const int periods[kDimensions] = {1, 1};
    dims_create_(ranks_, kDimensions, sizes);
    mpi::Comm torus;
    doors_.Cart_create(world(), kDimensions, sizes, periods, 0, &torus.bits);
    neighbors = 2 * kDimensions;
    return torus;
}

void Job::agree_on_largest(std::span<std::uint64_t> numbers) const {
    const std::vector<std::uint64_t> mine(numbers.begin(), numbers.end());
    mpi::lib().Allreduce(mine.data(), numbers.data(), static_cast<int>(numbers.size()), mpi::lib().int64,
                         mpi::lib().max, world());
}

void Job::tell_from_rank_0(std::uint64_t& number) const {
    mpi::lib().Bcast(&number, 1, mpi::lib().int64, 0, world());
}

bool Job::choose(mpi::Comm comm, algorithms::Collective collective, const std::string& choice) const {
    return choose_(&comm.bits, base::name_of(collective).data(), choice.c_str()) == 0;
}

bool Job::facts_of(mpi::Comm comm, policy::Facts& facts) const {
    std::int64_t found[5] = {};
    if (facts_(&comm.bits, found) != 0) return false;
    facts.nodes = static_cast<std::int32_t>(found[0]);
    facts.ranks_per_node = static_cast<std::int32_t>(found[1]);
    facts.domains = static_cast<std::int32_t>(found[2]);
    if (found[3] >= 0) facts.degree = static_cast<std::uint64_t>(found[3]);
    facts.crowded = found[4] != 0;
    return true;
}

bool Job::is_asked_to_end() { return g_asked_to_end != 0; }

}  // namespace coco::tools
