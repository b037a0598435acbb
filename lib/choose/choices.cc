// SPDX-License-Identifier: BSD-3-Clause
#include "choose/choices.h"

#include <algorithm>

namespace coco::choose {

std::uint64_t Choices::next_bound() {
    if (left_to_mpi_++ < calls_unseen_) return largest_block_bytes_;
    left_to_mpi_ = 0;
    calls_unseen_ = std::min(2 * calls_unseen_, kMostUnseen);
    return 0;
}

const Choice& Choices::choose(const policy::Policy& policy, policy::Facts facts, bool bounded) {
    const int collective = static_cast<int>(facts.collective);
    Memo& memo = memo_[collective];
    if (bounded) facts.block_bytes = next_bound();
    const std::uint64_t block_bytes = facts.block_bytes.value_or(0);
    facts.calls = ++calls_[collective];
    if (memo.block_bytes != block_bytes || facts.calls > memo.choice.last_call) {
        const policy::Verdict verdict = policy::select(policy, facts);
        memo = {block_bytes,
                {verdict.choice.algorithm, verdict.choice.parameters, verdict.forced, verdict.last_call}};
    }
    if (bounded && block_bytes != 0 && memo.choice.algorithm != nullptr) calls_unseen_ = kLeastUnseen;
    return memo.choice;
}

void Choices::note_largest_block(bool refused, std::uint64_t bytes) {
    constexpr std::uint64_t kBeyondRules = std::uint64_t{1} << 62;
    largest_block_bytes_ = refused ? kBeyondRules : bytes;
    left_to_mpi_ = 0;
}

}  // namespace coco::choose
