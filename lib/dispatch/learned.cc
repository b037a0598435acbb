// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/learned.h"

#include <limits>
#include <string>
#include <utility>

#include "base/index.h"
#include "base/log.h"
#include "choose/rules_learned.h"
#include "mpi/library.h"
#include "os/clock.h"
#include "settings/learned_file.h"

namespace coco::dispatch {
namespace {

// How many of the policy's first rules are learned.
std::size_t g_learned = 0;

// Made once: what a program puts into its environment later is not for this job's MPI library. Never
// destroyed: a program may end MPI in an exit handler.
const policy::LearnedKey& key_of(const settings::Settings& settings) {
    static const auto* const key = new policy::LearnedKey(
        settings::key_for(mpi::version_of(mpi::lib()), std::span(settings.policy.rules).subspan(g_learned)));
    return *key;
}

// A file that the user has named is the user's concern; the cache is ours.
void tell(const settings::Settings& settings, const std::string& trouble) {
    static bool told = false;  // once is enough
    if (std::exchange(told, true)) return;
    if (settings.learn.file.empty())
        COCO_LOG(info, "learned rules: " << trouble);
    else
        COCO_LOG(warn, "learned rules: " << trouble);
}

// Rank 0's text to all ranks, or no text if one of them cannot use it.
void broadcast(std::string& text, bool can_use) {
    const bool is_first = mpi::world_rank() == 0;
    std::int64_t mine = is_first ? std::ssize(text) : std::numeric_limits<std::int64_t>::max(), bytes = 0;
    if (!can_use) mine = 0;
    mpi::lib().Allreduce(&mine, &bytes, 1, mpi::lib().int64, mpi::lib().min, mpi::lib().comm_world);
    text.resize(base::index(bytes));
    if (bytes != 0)
        mpi::lib().Bcast(text.data(), static_cast<int>(bytes), mpi::lib().byte, 0, mpi::lib().comm_world);
}

}  // namespace

void fetch_learned_rules(settings::Settings& settings, bool may_have_chosen) {
    std::string text;
    if (mpi::world_rank() == 0) {
        const policy::LearnedKey& key = key_of(settings);
        std::string trouble;
        // No communicator that calls are taken on is larger: those with ranks of another world are left to
        // MPI.
        const std::vector<policy::Rule> rules = choose::rules_for_job(
            settings::read_learned(settings::learned_path(settings.learn.file, key), key, trouble),
            base::index(mpi::world_ranks()));
        if (!trouble.empty()) tell(settings, trouble);
        if (!rules.empty()) text = policy::text_of({key, rules});
    }
    broadcast(text, !may_have_chosen);
    policy::Learned learned;
    if (text.empty() || policy::parse_learned(text, "learned rules", learned)) return;
    std::vector<policy::Rule>& all = settings.policy.rules;
    g_learned = learned.rules.size();
    all.insert(all.begin(), learned.rules.begin(), learned.rules.end());
}

void leave_learned_rules(const settings::Settings& settings, const choose::Journal& journal) {
    const std::vector<choose::Lesson> lessons = journal.lessons();
    if (lessons.empty()) return;
    const policy::LearnedKey& key = key_of(settings);
    const std::string path = settings::learned_path(settings.learn.file, key);
    if (path.empty()) return;
    std::string trouble;
    // Other jobs may have written since this one began.
    std::vector<policy::Rule> old = settings::read_learned(path, key, trouble);
    const bool had_any = !old.empty();
    policy::Learned learned{key, choose::rules_learned(lessons, settings.policy, std::move(old))};
    if (learned.rules.empty() && !had_any) return;
    trouble.clear();
    if (!settings::write_learned(path, learned, trouble)) tell(settings, trouble);
}

}  // namespace coco::dispatch
