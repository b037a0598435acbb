// SPDX-License-Identifier: BSD-3-Clause
#include "comm/crowding.h"

#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "os/process.h"

namespace coco::comm {

FoldedCpus fold(const os::Cpus& cpus) {
    COCO_CHECK(cpus.quota >= 0, "a quota is a number of CPUs, or none");
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
    Host& all = hosts_[host];
    ++all.ranks;
    all.job_crowds |= job_crowds;
    for (int word = 0; word < FoldedCpus::kWords; ++word) all.cpus.words[word] |= cpus.words[word];
    // The tighter quota counts; 0 is none.
    if (all.cpus.quota == 0 || (cpus.quota != 0 && cpus.quota < all.cpus.quota)) all.cpus.quota = cpus.quota;
}

bool Crowding::Host::is_crowded() const {
    COCO_CHECK(ranks >= 1, "a host that is known has ranks");
    os::Cpus unfolded{};
    std::copy_n(cpus.words, FoldedCpus::kWords, unfolded.mask);
    unfolded.quota = cpus.quota;
    return ranks > unfolded.count() || job_crowds;
}

bool Crowding::is_crowded(std::uint64_t host) const {
    const auto known = hosts_.find(host);
    return known != hosts_.end() && known->second.is_crowded();
}

bool Crowding::is_any_crowded() const {
    return std::ranges::any_of(hosts_, [](const auto& host) { return host.second.is_crowded(); });
}

}  // namespace coco::comm
