// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/bundles_combined.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace coco::schedule {
namespace {

// The first word of a letter: what the letter is about.
enum Word : std::int32_t { kArrival, kAsk, kPlace, kContents };

void append(std::vector<std::int32_t>& words, const std::vector<Load>& loads) {
    for (const Load& load : loads) words.insert(words.end(), {load.origin, load.blocks});
}
std::vector<Load> read_loads(std::span<const std::int32_t> words) {
    std::vector<Load> loads;
    for (std::size_t i = 0; i < words.size(); i += 2) loads.push_back({words[i], words[i + 1]});
    return loads;
}

}  // namespace

BundleCombining::BundleCombining(const topology::NodeMap& map, std::int32_t rank, bool personal,
                                 const Leading& leading, Bundles begun, std::vector<Bundled> numbered)
    : leaders_(map, leading),
      rank_(rank),
      own_node_(leaders_.node_of(rank)),
      personal_(personal),
      leading_(leading),
      bundles_(std::move(begun)),
      numbered_(std::move(numbered)) {
    for (std::int32_t layer = 0; layer < leaders_.layers(); ++layer)
        if (leaders_.in_layer(own_node_, layer) == rank) layers_[layer];
    for (const Bundle& bundle : bundles_.outgoing) {
        const std::int32_t to = leaders_.node_of(bundle.peer);
        layers_.at(leaders_.layer_of(to)).to[to] = bundle.blocks;
        contents_[{own_node_, to}] = bundle.loads;
    }
}

std::vector<Letter> BundleCombining::speak() {
    switch (stage_) {
        case Stage::introductions:
            return introduce();
        case Stage::pattern:
            return speak_in_layers();
        case Stage::arrivals:
            return tell_arrivals();
        case Stage::places:
            return tell_places();
        case Stage::receivers:
            return tell_receivers();
        case Stage::done:
            break;
    }
    return {};
}

void BundleCombining::hear(std::span<const Letter> letters) {
    switch (stage_) {
        case Stage::introductions:
            return hear_introductions(letters);
        case Stage::pattern:
            return hear_in_layers(letters);
        case Stage::arrivals:
            return hear_arrivals(letters);
        case Stage::places:
            return hear_places(letters);
        case Stage::receivers:
            for (const Letter& l : letters)
                bundles_.taken.push_back(
                    {{l.words[0], rank_, l.words[1], l.words[2]}, l.words[3], l.words[4], l.words[5]});
            break;
        case Stage::done:
            break;
    }
}

bool BundleCombining::wants_more() const {
    return stage_ == Stage::pattern &&
           std::ranges::any_of(layers_, [](const auto& layer) { return layer.second.maker->wants_more(); });
}

void BundleCombining::turn(bool any_wants_more) {
    if (stage_ == Stage::pattern) {
        for (auto& [number, layer] : layers_) layer.maker->turn(any_wants_more);
        clock_.turn(any_wants_more);
        if (!clock_.done()) return;
        collect();
    }
    stage_ = static_cast<Stage>(static_cast<int>(stage_) + 1);
}

Bundles BundleCombining::take() {
    name_ranks();
    sort_taken(bundles_.taken, rank_, leaders_.ranks());
    return std::move(bundles_);
}

std::vector<Letter> BundleCombining::introduce() const {
    std::vector<Letter> letters;
    for (const auto& [number, layer] : layers_)
        for (const auto& [to, blocks] : layer.to)
            letters.push_back({leaders_.in_layer(to, number), {own_node_, blocks}});
    return letters;
}

void BundleCombining::hear_introductions(std::span<const Letter> letters) {
    for (const Letter& letter : letters)
        layers_.at(leaders_.layer_of(own_node_)).from[letter.words[0]] = letter.words[1];
    for (auto& [number, layer] : layers_)
        layer.maker.emplace(own_node_, layer.to, layer.from, leading_.threshold, leading_.depth);
}

// The letters of the makers go from node to node. Before their words stand the layer and the sending node.
std::vector<Letter> BundleCombining::speak_in_layers() {
    std::vector<Letter> letters;
    for (auto& [number, layer] : layers_)
        for (Letter& letter : layer.maker->speak()) {
            letter.rank = leaders_.in_layer(letter.rank, number);
            letter.words.insert(letter.words.begin(), {number, own_node_});
            letters.push_back(std::move(letter));
        }
    return letters;
}

void BundleCombining::hear_in_layers(std::span<const Letter> letters) {
    for (const Letter& letter : letters)
        layers_.at(letter.words[0])
            .inbox.push_back({letter.words[1], {letter.words.begin() + 2, letter.words.end()}});
    for (auto& [number, layer] : layers_) layer.maker->hear(std::exchange(layer.inbox, {}));
}

// A rank that leads several layers goes through the layers in their order within each iteration of a level.
// Its partners do the same.
void BundleCombining::collect() {
    for (auto& [number, layer] : layers_) {
        Combining made = layer.maker->take();
        for (Trade& trade : made.sends.trades) {
            trade.iteration = trade.iteration * leaders_.layers() + number;
            trade.partner = leaders_.in_layer(trade.partner, number);
            sends_.trades.push_back(std::move(trade));
        }
        std::ranges::move(made.sends.cargoes, std::back_inserter(sends_.cargoes));
        std::ranges::move(made.receives.arrivals, std::back_inserter(ending_here_));
    }
    sort_trades(sends_.trades);
    std::ranges::sort(sends_.cargoes, {}, [&](const Cargo& cargo) {
        return std::pair(cargo.level, leaders_.distance(own_node_, cargo.rank));
    });
}

std::vector<Letter> BundleCombining::tell_arrivals() const {
    std::vector<Letter> letters;
    for (const Cargo& cargo : ending_here_) {
        std::vector<std::int32_t> words{kArrival, leaders_.sender(cargo.rank, own_node_)};
        append(words, cargo.loads);
        letters.push_back({leaders_.receiver(cargo.rank, own_node_), std::move(words)});
    }
    if (personal_) return letters;
    std::set<Way> carried;
    for (const Trade& trade : sends_.trades)
        for (const Cargo& cargo : trade.taken)
            for (const Load& load : cargo.loads) carried.insert({load.origin, cargo.rank});
    for (const auto& [origin, to] : carried) letters.push_back({leaders_.sender(origin, to), {kAsk, to}});
    return letters;
}

void BundleCombining::hear_arrivals(std::span<const Letter> letters) {
    for (const Letter& letter : letters)
        if (letter.words[0] == kArrival)
            arriving_.push_back({letter.words[1], read_loads(std::span(letter.words).subspan(2))});
        else
            asking_.push_back(letter);
    lay_out_arrivals();
}

// Arrivals that carry least are expected first, and get the first turns.
void BundleCombining::lay_out_arrivals() {
    std::ranges::sort(arriving_, {}, [&](const Arrival& a) {
        return std::pair(a.loads.size(), leaders_.distance(leaders_.node_of(a.from), own_node_));
    });
    std::int32_t turn = 0;
    for (const Arrival& arrival : arriving_) {
        Bundle bundle{arrival.from, bundles_.scratch_blocks, 0, turn++, {}, {}};
        for (const Load& load : arrival.loads) bundle.blocks += load.blocks;
        bundles_.scratch_blocks += bundle.blocks;
        bundles_.incoming.push_back(std::move(bundle));
    }
}

std::vector<Letter> BundleCombining::tell_places() const {
    std::vector<Letter> letters;
    for (std::size_t i = 0; i < arriving_.size(); ++i) {
        std::int32_t at = bundles_.incoming[i].first;
        for (const Load& load : arriving_[i].loads) {
            letters.push_back({leaders_.receiver(load.origin, own_node_),
                               {kPlace, load.origin, at, bundles_.incoming[i].turn}});
            at += load.blocks;
        }
    }
    for (const Letter& asking : asking_) {
        std::vector<std::int32_t> words{kContents, own_node_, asking.words[1]};
        append(words, contents_.at({own_node_, asking.words[1]}));
        letters.push_back({asking.rank, std::move(words)});
    }
    return letters;
}

void BundleCombining::hear_places(std::span<const Letter> letters) {
    for (const Letter& letter : letters) {
        const auto& words = letter.words;
        if (words[0] == kPlace)
            places_[words[1]] = {{}, letter.rank, words[2], words[3]};
        else
            contents_[{words[1], words[2]}] = read_loads(std::span(words).subspan(3));
    }
}

std::vector<Letter> BundleCombining::tell_receivers() const {
    std::vector<Letter> letters;
    for (const Bundled& block : numbered_) {
        const Edge& edge = block.edge;
        const Bundled& place = places_.at(leaders_.node_of(edge.sender));
        letters.push_back(
            {edge.receiver,
             {edge.sender, edge.sent, edge.received, place.leader, place.index + block.index, place.turn}});
    }
    return letters;
}

// Puts ranks in place of nodes: the leader to which a cargo goes from here, and in an allgather the ranks
// whose blocks are in it.
void BundleCombining::name_ranks() {
    bundles_.sends = std::move(sends_);
    auto rename = [&](std::vector<Cargo>& cargoes) {
        for (Cargo& cargo : cargoes) cargo = name_ranks(cargo);
    };
    for (Trade& trade : bundles_.sends.trades)
        for (auto* cargoes : {&trade.given, &trade.taken}) rename(*cargoes);
    rename(bundles_.sends.cargoes);
}

Cargo BundleCombining::name_ranks(const Cargo& cargo) const {
    Cargo named{leaders_.receiver(own_node_, cargo.rank), {}, cargo.level};
    for (const Load& load : cargo.loads) {
        if (personal_) {
            named.loads.push_back(load);
            continue;
        }
        const auto& blocks = contents_.at({load.origin, cargo.rank});
        named.loads.insert(named.loads.end(), blocks.begin(), blocks.end());
    }
    return named;
}

}  // namespace coco::schedule
