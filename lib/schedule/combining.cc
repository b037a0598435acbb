// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/combining.h"

#include <algorithm>
#include <iterator>
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
      depth_(depth == 0 ? INT32_MAX : depth),
      wished_(base::index(map.ranks())) {
    COCO_CHECK(threshold >= 0 && depth >= 0, "a threshold and a depth are counts");
    for (const auto& [to, blocks] : blocks_to(map, rank, neighborhood)) out_[to].loads = {{rank, blocks}};
    for (const auto& [from, blocks] : blocks_from(map, rank, neighborhood)) in_[from] = {{from, blocks}};
}

std::vector<Letter> CombiningMaker::speak() {
    std::vector<Letter> letters;
    if (stage_ == Stage::sources) {
        std::vector<std::int32_t> sources;
        for (const auto& [source, loads] : in_) sources.push_back(source);
        for (std::int32_t source : sources) letters.push_back({source, sources});
    }
    for (const auto& [partner, common] : chosen_)
        if (stage_ == Stage::choices)
            letters.push_back({partner, common});
        else if (stage_ == Stage::outcomes)
            divide(partner, common, letters);
    return letters;
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
            choose();
            break;
        case Stage::choices:
            hear_choices(letters);
            break;
        case Stage::outcomes:
            hear_outcomes(letters);
            break;
        case Stage::done:
            break;
    }
}

void CombiningMaker::turn(bool any_wants_more) {
    COCO_CHECK(stage_ != Stage::done, "a finished pattern has no more rounds");
    switch (stage_) {
        case Stage::sources:
            stage_ = any_wants_more ? Stage::choices : Stage::done;
            break;
        case Stage::choices:
            stage_ = Stage::outcomes;
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

// The friend with most neighbours in common comes first. These do not count for the next one.
void CombiningMaker::choose() {
    chosen_.clear();
    std::vector<std::int32_t> common(wished_.size());  // by rank
    std::vector<std::pair<std::int32_t, std::span<const std::int32_t>>> left;
    for (const auto& [to, outgoing] : out_) {
        left.emplace_back(to, outgoing.sources);
        for (std::int32_t source : outgoing.sources) ++common[base::index(source)];
    }
    common[base::index(rank_)] = 0;
    // A strict order of friends. As a first choice both ranks of a pair give it the same weight.
    auto weight = [&](std::int32_t other) {
        auto at = base::index(other);
        return std::pair(common[at] * (wished_[at] ? 5 : 4), -(rank_ ^ other));
    };
    while (chosen_.size() < kMostChoices) {
        std::int32_t best = rank_;
        for (std::int32_t other = 0; other < base::number(common.size()); ++other)
            if (common[base::index(other)] >= needed() && weight(other) > weight(best)) best = other;
        if (best == rank_) return;
        std::erase_if(left, [&](const auto& row) {
            if (!std::ranges::binary_search(row.second, best)) return false;
            chosen_[best].push_back(row.first);
            for (std::int32_t source : row.second) --common[base::index(source)];
            return true;
        });
    }
}

// Keeps the friends that have chosen this rank too, and of their common neighbours those chosen by both.
void CombiningMaker::hear_choices(std::span<const Letter> letters) {
    wished_.assign(wished_.size(), false);
    for (const auto& [partner, common] : chosen_) wished_[base::index(partner)] = true;
    auto mine = std::exchange(chosen_, {});
    for (const Letter& letter : letters) {
        wished_[base::index(letter.rank)] = true;
        std::vector<std::int32_t> both;
        std::ranges::set_intersection(mine[letter.rank], letter.words, std::back_inserter(both));
        if (base::number(both.size()) >= needed()) chosen_[letter.rank] = std::move(both);
    }
}

// Algorithm 1, lines 8 to 22. The lower rank of the pair keeps the first half of their common neighbours.
void CombiningMaker::divide(std::int32_t partner, std::span<const std::int32_t> common,
                            std::vector<Letter>& letters) {
    const std::size_t half = (common.size() + 1) / 2;
    Trade& trade = made_.sends.trades.emplace_back(
        Trade{.iteration = iteration_, .partner = partner, .level = 0, .given = {}, .taken = {}});
    Letter to_partner{partner, {kGiven, 0}};
    for (std::size_t i = 0; i < common.size(); ++i) {
        auto at = out_.find(common[i]);
        if ((i < half) == (rank_ < partner)) {
            bool for_good = at->second.times + 1 >= depth_;
            letters.push_back({common[i], {for_good ? kOnloadedForGood : kOnloaded, partner}});
            continue;
        }
        letters.push_back({common[i], {kOffloaded, partner}});
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
        if (letter.words[0] == kGiven) take_over(letter.rank, std::span(letter.words).subspan(1));
        if (letter.words[0] != kOnloadedForGood) continue;
        auto from = in_.find(letter.rank);
        COCO_CHECK(from != in_.end(), "an active neighbour is onloaded");
        made_.receives.arrivals.push_back({letter.rank, std::move(from->second)});
        in_.erase(from);
    }
}

// words: the highest level of what the partner gives, then its cargo for our half of the common neighbours.
void CombiningMaker::take_over(std::int32_t partner, std::span<const std::int32_t> words) {
    auto same = std::ranges::find_if(made_.sends.trades, [&](const Trade& t) {
        return t.partner == partner && t.iteration == iteration_;
    });
    COCO_CHECK(same != made_.sends.trades.end(), "a rank takes over from its partner in a trade");
    COCO_CHECK(!words.empty(), "a partner tells the level of what it gives");
    Trade& trade = *same;
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
