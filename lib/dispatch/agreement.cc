// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/agreement.h"

#include "mpi/library.h"
#include "os/clock.h"

namespace coco::dispatch {
namespace {

// Between signed numbers and unsigned ones in the same order, as those are what every MPI library can compare.
std::uint64_t ordered(std::int64_t number) {
    return static_cast<std::uint64_t>(number) ^ (std::uint64_t{1} << 63);
}
std::int64_t signed_of(std::uint64_t number) {
    return static_cast<std::int64_t>(number ^ (std::uint64_t{1} << 63));
}

}  // namespace

bool BoardAgreement::agree(std::span<std::int64_t> numbers) {
    const std::uint64_t begin_ns = os::now_ns();
    std::vector<std::uint64_t> mine(numbers.size()), most(numbers.size());
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = ordered(numbers[i]);
    mine.back() = ordered(-last_ns_);  // the largest is the shortest
    const int result = mpi::lib().Allreduce(mine.data(), most.data(), static_cast<int>(mine.size()),
                                            mpi::lib().uint64, mpi::lib().max, comm_);
    if (result != mpi::kSuccess) return false;
    for (std::size_t i = 0; i < mine.size(); ++i) numbers[i] = signed_of(most[i]);
    numbers.back() = -numbers.back();
    last_ns_ = static_cast<std::int64_t>(os::now_ns() - begin_ns);
    return true;
}

}  // namespace coco::dispatch
