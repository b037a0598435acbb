// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/agreement.h"

#include <algorithm>
#include <vector>

#include "mpi/library.h"
#include "os/clock.h"

namespace coco::dispatch {

bool BoardAgreement::agree(std::span<std::int64_t> numbers) {
    was_asked_ = true;
    const std::uint64_t begin_ns = os::now_ns();
    std::vector<std::int64_t> mine(numbers.begin(), numbers.end()), most(numbers.size());
    mine.back() = -comm_.agreement_ns;  // the largest is the shortest
    const int result = mpi::lib().Allreduce(mine.data(), most.data(), static_cast<int>(mine.size()),
                                            mpi::lib().int64, mpi::lib().max, comm_.handle);
    if (result != mpi::kSuccess) return false;
    std::ranges::copy(most, numbers.begin());
    numbers.back() = -numbers.back();
    comm_.agreement_ns = static_cast<std::int64_t>(os::now_ns() - begin_ns);
    return true;
}

}  // namespace coco::dispatch
