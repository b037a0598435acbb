// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/combining.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/index.h"

namespace coco::schedule {
namespace {

// The first word of a letter about the outcome of an iteration.
enum Outcome : std::int32_t { kOffloaded, kOnloaded, kOnloadedForGood, kGiven };

void append(std::vector<Load>& to, const std::vector<Load>& more) {
    to.insert(to.end(), more.begin(), more.end());
}

bool is_on_other_node(const topology::NodeMap& map, std::int32_t rank, std::int32_t other) {
    COCO_CHECK(rank >= 0 && rank < map.ranks() && other < map.ranks(), "neighbours are ranks of the map");
    return other >= 0 && map.node[base::index(other)] != map.node[base::index(rank)];
}

// How many blocks go to each neighbour on another node, and come from each.
using Blocks = std::map<std::int32_t, std::int32_t>;
Blocks blocks_to(const topology::NodeMap& map, std::int32_t rank, const Neighborhood& neighborhood) {
    Blocks blocks;
    for (std::int32_t to : neighborhood.destinations)
        if (is_on_other_node(map, rank, to)) ++blocks[to];
    return blocks;
}
Blocks blocks_from(const topology::NodeMap& map, std::int32_t rank, const Neighborhood& neighborhood) {
    Blocks blocks;
    for (const Edge& edge : neighborhood.incoming)
        if (is_on_other_node(map, rank, edge.sender)) ++blocks[edge.sender];
    return blocks;
}

}  // namespace

std::int32_t blocks_in(const Cargo& cargo, bool personal) {
    if (!personal) return base::number(cargo.loads.size());
    std::int32_t blocks = 0;
    for (const Load& load : cargo.loads) blocks += load.blocks;
    return blocks;
}

std::int32_t blocks_arriving(const CombinedReceives& receives, bool personal) {
    std::int32_t all = 0;
    for (const Cargo& arrival : receives.arrivals)
        if (std::int32_t blocks = blocks_in(arrival, personal); blocks > 1) all += blocks;
    return all;
}

CombiningMaker::CombiningMaker(const topology::NodeMap& map, std::int32_t rank,
                               const Neighborhood& neighborhood, std::int32_t threshold, std::int32_t depth)
    : rank_(rank),
      threshold_(threshold == 0 ? kUsualThreshold : threshold),
      depth_(depth == 0 ? INT32_MAX : depth) {
    COCO_CHECK(threshold >= 0 && depth >= 0, "a threshold and a depth are counts");
    for (const auto& [to, blocks] : blocks_to(map, rank, neighborhood)) out_[to].loads = {{rank, blocks}};
    for (const auto& [from, blocks] : blocks_from(map, rank, neighborhood)) in_[from] = {{from, blocks}};
}

std::vector<Letter> CombiningMaker::speak() {
    switch (stage_) {
        case Stage::sources: {
            std::vector<std::int32_t> sources;
            for (const auto& [source, loads] : in_) sources.push_back(source);
            std::vector<Letter> letters;
            for (std::int32_t source : sources) letters.push_back({source, sources});
            return letters;
        }
        case Stage::choices:
            if (state_ != State::looking) return {};
            choose();
            return tell_friends(choice_);
        case Stage::states:
            return std::exchange(settled_now_, false) ? tell_friends(kNobody) : std::vector<Letter>{};
        case Stage::outcomes:
            return state_ == State::paired ? divide() : std::vector<Letter>{};
        case Stage::done:
            break;
    }
    return {};
}

void CombiningMaker::hear(std::span<const Letter> letters) {
    switch (stage_) {
        case Stage::sources:
            for (const Letter& letter : letters) {
                COCO_CHECK_DEAR(std::ranges::is_sorted(letter.words), "sources are told in their order");
                COCO_CHECK_DEAR(std::ranges::binary_search(letter.words, rank_),
                                "a neighbour knows that this rank sends to it");
                out_.at(letter.rank).sources = letter.words;
            }
            find_friends();
            break;
        case Stage::choices:
            hear_choices(letters);
            break;
        case Stage::states:
            for (const Letter& letter : letters) {
                Friend& settled = friends_.at(letter.rank);
                settled.settled = true;
                settled.candidate = false;
            }
            break;
        case Stage::outcomes:
            hear_outcomes(letters);
            break;
        case Stage::done:
            break;
    }
}

bool CombiningMaker::wants_more() const {
    if (stage_ == Stage::sources) return !friends_.empty();
    return stage_ == Stage::states && state_ == State::looking;
}

void CombiningMaker::turn(bool any_wants_more) {
    COCO_CHECK(stage_ != Stage::done, "a finished pattern has no more rounds");
    switch (stage_) {
        case Stage::sources:
            stage_ = any_wants_more ? Stage::choices : Stage::done;
            break;
        case Stage::choices:
            stage_ = Stage::states;
            break;
        case Stage::states:
            stage_ = any_wants_more ? Stage::choices : Stage::outcomes;
            break;
        default:
            stage_ = Stage::sources;
            ++iteration_;
    }
}

Combining CombiningMaker::take() {
    COCO_CHECK(done(), "a pattern is taken when all rounds are over");
    auto& [sends, receives] = made_;
    for (auto& [to, outgoing] : out_)
        sends.cargoes.push_back({to, std::move(outgoing.loads), outgoing.level});
    for (auto& [from, loads] : in_) receives.arrivals.push_back({from, std::move(loads)});
    std::ranges::sort(sends.trades, {},
                      [](const Trade& trade) { return std::pair(trade.level, trade.iteration); });
    std::ranges::sort(sends.cargoes, {}, [](const Cargo& c) { return std::pair(c.level, c.rank); });
    std::ranges::sort(receives.arrivals, {},
                      [](const Cargo& c) { return std::pair(c.loads.size(), c.rank); });
    return std::move(made_);
}

std::vector<Letter> CombiningMaker::tell_friends(std::int32_t word) const {
    std::vector<Letter> letters;
    for (const auto& [rank, one] : friends_)
        if (!one.settled) letters.push_back({rank, {word}});
    return letters;
}

void CombiningMaker::find_friends() {
    friends_.clear();
    std::map<std::int32_t, std::int32_t> common;
    for (const auto& [to, outgoing] : out_)
        for (std::int32_t source : outgoing.sources) ++common[source];
    for (auto [source, count] : common)
        if (source != rank_ && count >= threshold_) friends_[source] = {.common = count};
    state_ = friends_.empty() ? State::terminal : State::looking;
    choice_ = kNobody;
    settled_now_ = false;
}

// Algorithm 2, lines 3 to 22.
void CombiningMaker::choose() {
    if (choice_ == kNobody) {
        choice_ = best_candidate();
        return;
    }
    if (!friends_.at(choice_).settled && rank_ < choice_) return;
    if (std::int32_t lower = lower_one_that_chose_me(); lower != kNobody) {
        choice_ = lower;
        return;
    }
    friends_.at(choice_).candidate = false;
    choice_ = best_candidate();
    if (choice_ != kNobody) return;
    state_ = State::terminal;
    settled_now_ = true;
}

// A strict order of a rank's friends. Both ranks of a pair give the pair the same key, so the pair with the
// highest key is the choice of both.
bool CombiningMaker::counts_for_more(std::int32_t a, std::int32_t b) const {
    auto key = [&](std::int32_t other) { return std::pair(friends_.at(other).common, -(rank_ ^ other)); };
    return key(a) > key(b);
}

std::int32_t CombiningMaker::best_candidate() const {
    std::int32_t best = kNobody;
    for (const auto& [rank, one] : friends_)
        if (one.candidate && (best == kNobody || counts_for_more(rank, best))) best = rank;
    return best;
}

std::int32_t CombiningMaker::lower_one_that_chose_me() const {
    for (const auto& [rank, one] : friends_)
        if (rank < rank_ && one.candidate && one.choice == rank_) return rank;
    return kNobody;
}

void CombiningMaker::hear_choices(std::span<const Letter> letters) {
    for (auto& [rank, one] : friends_) one.choice = kNobody;
    for (const Letter& letter : letters) {
        COCO_CHECK(letter.words.size() == 1, "a friend makes one choice");
        friends_.at(letter.rank).choice = letter.words[0];
    }
    COCO_CHECK(state_ != State::looking || choice_ != kNobody,
               "a rank that looks for a partner has chosen a friend");
    if (state_ != State::looking || friends_.at(choice_).choice != rank_) return;
    state_ = State::paired;
    settled_now_ = true;
}

// Algorithm 1, lines 8 to 22. The lower rank of the pair keeps the first half of their common neighbours.
std::vector<Letter> CombiningMaker::divide() {
    std::vector<std::int32_t> common;
    for (const auto& [to, outgoing] : out_)
        if (std::ranges::binary_search(outgoing.sources, choice_)) common.push_back(to);
    COCO_CHECK(std::ssize(common) == friends_.at(choice_).common,
               "partners share the neighbours that made them friends");
    const std::size_t half = (common.size() + 1) / 2;
    Trade& trade = made_.sends.trades.emplace_back(
        Trade{.iteration = iteration_, .partner = choice_, .level = 0, .given = {}, .taken = {}});
    Letter to_partner{choice_, {kGiven, 0}};
    std::vector<Letter> letters;
    for (std::size_t i = 0; i < common.size(); ++i) {
        auto at = out_.find(common[i]);
        if ((i < half) == (rank_ < choice_)) {
            bool for_good = at->second.times + 1 >= depth_;
            letters.push_back({common[i], {for_good ? kOnloadedForGood : kOnloaded, choice_}});
            continue;
        }
        letters.push_back({common[i], {kOffloaded, choice_}});
        auto& words = to_partner.words;
        words.push_back(common[i]);
        words.push_back(base::number(at->second.loads.size()));
        for (const Load& load : at->second.loads) words.insert(words.end(), {load.origin, load.blocks});
        trade.level = std::max(trade.level, at->second.level);
        trade.given.push_back({common[i], std::move(at->second.loads)});
        out_.erase(at);
    }
    to_partner.words[1] = trade.level;
    letters.push_back(std::move(to_partner));
    return letters;
}

// Offloads are read first: they add to what a neighbour will send, and an onload for good ends that.
void CombiningMaker::hear_outcomes(std::span<const Letter> letters) {
    for (const Letter& letter : letters)
        if (letter.words[0] == kOffloaded) {
            auto from = in_.find(letter.rank);
            COCO_CHECK(letter.words.size() == 2, "an offload names the rank that takes over");
            COCO_CHECK(from != in_.end(), "an active neighbour offloads");
            append(in_.at(letter.words[1]), from->second);
            in_.erase(from);
        }
    for (const Letter& letter : letters) {
        if (letter.words[0] == kGiven) take_over(std::span(letter.words).subspan(1));
        if (letter.words[0] != kOnloadedForGood) continue;
        auto from = in_.find(letter.rank);
        COCO_CHECK(from != in_.end(), "an active neighbour is onloaded");
        made_.receives.arrivals.push_back({letter.rank, std::move(from->second)});
        in_.erase(from);
    }
}

// words: the highest level of what the partner gives, then its cargo for our half of the common neighbours.
void CombiningMaker::take_over(std::span<const std::int32_t> words) {
    COCO_CHECK(!made_.sends.trades.empty(), "a rank takes over from its partner in a trade");
    COCO_CHECK(!words.empty(), "a partner tells the level of what it gives");
    Trade& trade = made_.sends.trades.back();
    trade.level = 1 + std::max(trade.level, words[0]);
    words = words.subspan(1);
    while (!words.empty()) {
        COCO_CHECK(words.size() >= 2, "cargo names its neighbour and counts its loads");
        Cargo cargo{words[0], {}};
        auto loads = base::index(words[1]);
        COCO_CHECK(2 + 2 * loads <= words.size(), "a letter has all loads of its cargo");
        for (std::size_t i = 0; i < loads; ++i) cargo.loads.push_back({words[2 + 2 * i], words[3 + 2 * i]});
        words = words.subspan(2 + 2 * loads);
        auto at = out_.find(cargo.rank);
        COCO_CHECK(at != out_.end(), "what is taken over is for a common neighbour");
        COCO_CHECK(at->second.times < depth_, "a neighbour is onloaded so often and no more");
        append(at->second.loads, cargo.loads);
        at->second.level = std::max(at->second.level, trade.level);
        if (++at->second.times >= depth_) {
            made_.sends.cargoes.push_back({cargo.rank, std::move(at->second.loads), at->second.level});
            out_.erase(at);
        }
        trade.taken.push_back(std::move(cargo));
    }
}

}  // namespace coco::schedule
