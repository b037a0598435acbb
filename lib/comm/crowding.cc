// SPDX-License-Identifier: BSD-3-Clause
#include "comm/crowding.h"

#include <unistd.h>

#include <algorithm>

#include "os/process.h"

namespace coco::comm {

FoldedCpus fold(const os::Cpus& cpus) {
    FoldedCpus folded{};
    for (int word = 0; word < os::Cpus::kMost / 64; ++word)
        folded.words[word % FoldedCpus::kWords] |= cpus.mask[word];
    folded.quota = cpus.quota;
    return folded;
}

bool job_crowds_node() {
    return os::launched_node_ranks() > static_cast<std::uint64_t>(sysconf(_SC_NPROCESSORS_ONLN));
}

void Crowding::add(std::uint64_t host, const FoldedCpus& cpus, bool job_crowds) {
    os::Cpus all{};
    std::copy_n(cpus.words, FoldedCpus::kWords, all.mask);
    all.quota = cpus.quota;
    // Most often ranks of a host follow one another.
    const auto known = std::ranges::find(hosts_.rbegin(), hosts_.rend(), host, &Host::name);
    if (known == hosts_.rend()) return hosts_.push_back({host, 1, job_crowds, all});
    ++known->ranks;
    known->job_crowds |= job_crowds;
    known->cpus.join(all);
}

bool Crowding::is_crowded(std::uint64_t host) const {
    const auto known = std::ranges::find(hosts_, host, &Host::name);
    return known != hosts_.end() && known->is_crowded();
}

bool Crowding::is_any_crowded() const { return std::ranges::any_of(hosts_, &Host::is_crowded); }

}  // namespace coco::comm
