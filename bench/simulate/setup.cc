// SPDX-License-Identifier: BSD-3-Clause
#include "setup.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "schedule/bundles.h"
#include "schedule/combining.h"

namespace simulate {
namespace {

using coco::schedule::Bundled;
using coco::schedule::Bundles;
using coco::schedule::Bundling;
using coco::schedule::CombiningMaker;
using coco::schedule::Letter;

double cpu_now_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// One round of lib/comm/deal.h, as docs/simulation.md prices messages: who has most to send or to receive
// ends it.
class Round {
  public:
    explicit Round(std::size_t ranks) : sent_(ranks), received_(ranks) {}

    void letter(std::int32_t from, std::int32_t to, std::size_t bytes) {
        for (Load* load :
             {&sent_[static_cast<std::size_t>(from)], &received_[static_cast<std::size_t>(to)]}) {
            ++load->letters;
            load->bytes += bytes;
        }
    }
    SetupCost cost(bool asks_all) const {
        constexpr double kMessage_s = 0.5e-6, kHop_s = 1.5e-6, kByte_s = 1 / 11.9e9;
        double rounds = std::ceil(std::log2(static_cast<double>(sent_.size()))) * (asks_all ? 2 : 1);
        SetupCost cost{.rounds = 1, .network_s = rounds * kHop_s};
        double slowest_s = 0;
        for (const auto* loads : {&sent_, &received_})
            for (const Load& load : *loads)
                slowest_s = std::max(slowest_s, static_cast<double>(load.letters) * kMessage_s +
                                                    static_cast<double>(load.bytes) * kByte_s);
        for (const Load& load : sent_) {
            cost.letters += static_cast<std::int64_t>(load.letters);
            cost.bytes += static_cast<std::int64_t>(load.bytes);
        }
        cost.network_s += slowest_s;
        return cost;
    }

  private:
    struct Load {
        std::size_t letters = 0, bytes = 0;
    };
    std::vector<Load> sent_, received_;
};

// Passes the letters that all makers speak to the ranks for which they are. Returns: the round's cost.
template <class Maker>
SetupCost pass_letters(std::vector<Maker>& makers) {
    Round round(makers.size());
    std::vector<std::vector<Letter>> inbox(makers.size());
    for (std::size_t r = 0; r < makers.size(); ++r)
        for (Letter& letter : makers[r].speak()) {
            const auto from = static_cast<std::int32_t>(r), to = letter.rank;
            round.letter(from, to, (letter.words.size() + 2) * sizeof letter.words[0]);
            inbox[static_cast<std::size_t>(to)].push_back({from, std::move(letter.words)});
        }
    for (std::size_t r = 0; r < makers.size(); ++r) {
        makers[r].hear(inbox[r]);
        inbox[r] = {};
    }
    return round.cost(true);
}

// Takes them through their rounds.
template <class Maker>
auto make_by_letters(std::vector<Maker>& makers, SetupCost& cost) {
    while (!makers[0].done()) {
        cost.add(pass_letters(makers));
        bool any = std::ranges::any_of(makers, &Maker::wants_more);
        for (Maker& maker : makers) maker.turn(any);
    }
    std::vector<decltype(makers[0].take())> made;
    for (Maker& maker : makers) made.push_back(maker.take());
    return made;
}

using Mails = std::vector<Bundling::Mail>;

// Returns: by receiver, what came to it, by sender.
std::vector<std::vector<Bundled>> pass_mail(const Mails& mails, SetupCost& cost) {
    Round round(mails.size());
    std::vector<std::vector<Bundled>> inbox(mails.size());
    std::map<std::pair<std::size_t, std::int32_t>, std::size_t> blocks;
    for (std::size_t r = 0; r < mails.size(); ++r)
        for (std::size_t i = 0; i < mails[r].letters.size(); ++i) {
            std::int32_t to = mails[r].to[i];
            inbox[static_cast<std::size_t>(to)].push_back(mails[r].letters[i]);
            if (to != static_cast<std::int32_t>(r)) ++blocks[{r, to}];
        }
    for (const auto& [way, count] : blocks)
        round.letter(static_cast<std::int32_t>(way.first), way.second, count * sizeof(Bundled));
    cost.add(round.cost(false));
    return inbox;
}

std::vector<Bundles> bundle(std::vector<Bundling>& all, SetupCost& cost) {
    Mails mails;
    for (const Bundling& one : all) mails.push_back(one.ask());
    auto inbox = pass_mail(mails, cost);
    for (std::size_t r = 0; r < all.size(); ++r) mails[r] = all[r].assign(std::move(inbox[r]));
    inbox = pass_mail(mails, cost);
    for (std::size_t r = 0; r < all.size(); ++r) mails[r] = all[r].lay_out(std::move(inbox[r]));
    inbox = pass_mail(mails, cost);
    std::vector<Bundles> made;
    for (std::size_t r = 0; r < all.size(); ++r) made.push_back(all[r].finish(std::move(inbox[r])));
    return made;
}

}  // namespace

void SetupCost::add(const SetupCost& other) {
    rounds += other.rounds;
    letters += other.letters;
    bytes += other.bytes;
    network_s += other.network_s;
    cpu_s += other.cpu_s;
}

const Made<coco::schedule::Combining>& Setup::combining(std::int32_t threshold, std::int32_t depth) {
    auto [at, fresh] = combining_.try_emplace({threshold, depth});
    Made<coco::schedule::Combining>& made = at->second;
    if (!fresh) return made;
    const double begin_s = cpu_now_s();
    std::vector<CombiningMaker> makers;
    for (std::int32_t r = 0; r < map_.ranks(); ++r)
        makers.emplace_back(map_, r, graph_.near[static_cast<std::size_t>(r)], threshold, depth);
    made.of = make_by_letters(makers, made.cost);
    made.cost.cpu_s = (cpu_now_s() - begin_s) / map_.ranks();
    return made;
}

const Made<Bundles>& Setup::bundles(bool personal, std::int32_t leaders) {
    for (const KeptBundles& kept : bundles_)
        if (kept.personal == personal && kept.leaders == leaders) return kept.made;
    bundles_.push_back({personal, leaders, {}});
    Made<Bundles>& made = bundles_.back().made;
    const double begin_s = cpu_now_s();
    std::vector<Bundling> all;
    for (std::int32_t r = 0; r < map_.ranks(); ++r)
        all.emplace_back(map_, r, graph_.near[static_cast<std::size_t>(r)], personal, leaders);
    made.of = bundle(all, made.cost);
    made.cost.cpu_s = (cpu_now_s() - begin_s) / map_.ranks();
    return made;
}

}  // namespace simulate
