// SPDX-License-Identifier: BSD-3-Clause
#include "graph.h"

#include <algorithm>
#include <utility>

namespace coco::model {

void join(Clock& into, const Clock& more) {
    for (std::size_t t = 0; t < into.size(); ++t) into[t] = std::max(into[t], more[t]);
}

std::size_t Graph::events() const {
    std::size_t sum = 0;
    for (const auto& thread : threads) sum += thread.size();
    return sum;
}

std::vector<EventId> stores_to(const Graph& graph, int location) {
    std::vector<EventId> stores;
    graph.for_each([&](EventId id, const Event& event) {
        if (event.location == location && !is_load(event.kind)) stores.push_back(id);
    });
    std::ranges::sort(stores, {}, [&](EventId id) { return graph.at(id).rank; });
    return stores;
}

namespace {

// The last store, in their order, that this thread has seen or whose reader it knows of: coherence lets it
// read none before that, and write none before it.
std::uint16_t last_known(const Graph& graph, int location, const Clock& known) {
    std::uint16_t last = 0;
    for (std::size_t t = 0; t < graph.threads.size(); ++t)
        for (std::size_t i = 0; i < known[t]; ++i) {
            const Event& event = graph.threads[t][i];
            if (event.location != location) continue;
            last = std::max(last, is_load(event.kind) ? graph.rank_of(event.read_from) : event.rank);
        }
    return last;
}

}  // namespace

bool may_read(const Graph& graph, int location, const Clock& known, EventId store) {
    return graph.rank_of(store) >= last_known(graph, location, known);
}

std::vector<EventId> readable(const Graph& graph, int location, const Clock& known) {
    const std::uint16_t last = last_known(graph, location, known);
    std::vector<EventId> stores = stores_to(graph, location);
    std::vector<EventId> found(stores.begin() + std::max(0, last - 1), stores.end());
    if (last == 0) found.insert(found.begin(), kInitially);
    return found;
}

std::vector<std::uint16_t> places_for_store(const Graph& graph, int location, const Clock& known,
                                            const EventId* modified) {
    const std::vector<EventId> stores = stores_to(graph, location);
    std::uint16_t from = static_cast<std::uint16_t>(last_known(graph, location, known) + 1);
    auto to = static_cast<std::uint16_t>(stores.size() + 1);
    if (modified != nullptr) from = to = static_cast<std::uint16_t>(graph.rank_of(*modified) + 1);
    std::vector<std::uint16_t> places;
    for (std::uint16_t rank = from; rank <= to; ++rank) {
        // Nothing comes between a read-modify-write's store and the one that it has read.
        const bool splits = rank <= stores.size() && graph.at(stores[rank - 1u]).kind == Kind::store_modified;
        if (!splits) places.push_back(rank);
    }
    return places;
}

void insert_store(Graph& graph, std::int16_t thread, Event store) {
    for (auto& events : graph.threads)
        for (Event& event : events)
            if (event.location == store.location && !is_load(event.kind) && event.rank >= store.rank)
                ++event.rank;
    store.number = graph.added++;
    graph.threads[static_cast<std::size_t>(thread)].push_back(store);
}

Clock known_before(const Graph& graph, EventId id) {
    if (id.index == 0) return {};
    return graph.at({id.thread, static_cast<std::int16_t>(id.index - 1)}).happens_before;
}

void settle(Graph& graph, EventId id) {
    Event& event = graph.at(id);
    event.happens_before = event.causes = event.handed_on = {};
    if (id.index > 0) {
        const Event& before = graph.at({id.thread, static_cast<std::int16_t>(id.index - 1)});
        event.happens_before = before.happens_before;
        event.causes = before.causes;
    }
    const auto t = static_cast<std::size_t>(id.thread);
    event.happens_before[t] = event.causes[t] = static_cast<std::uint16_t>(id.index + 1);
    const Event* source = event.read_from == kInitially ? nullptr : &graph.at(event.read_from);
    if (is_load(event.kind)) {
        if (source != nullptr) join(event.causes, source->causes);
        if (source != nullptr && acquires(event.order)) join(event.happens_before, source->handed_on);
        return;
    }
    if (releases(event.order)) event.handed_on = event.happens_before;
    // A release sequence goes on through read-modify-writes.
    if (source != nullptr) join(event.handed_on, source->handed_on);
}

namespace {

bool happens_before(const Graph& graph, EventId a, EventId b) {
    return a != b && covers(graph.at(b).happens_before, a);
}

// By way of other locations: something behind `a` happens before something ahead of `b`.
bool happens_before_around(const Graph& graph, EventId a, EventId b) {
    const auto& from = graph.threads[static_cast<std::size_t>(a.thread)];
    const auto& to = graph.threads[static_cast<std::size_t>(b.thread)];
    const int a_location = graph.at(a).location, b_location = graph.at(b).location;
    EventId behind{a.thread, static_cast<std::int16_t>(a.index + 1)};
    EventId ahead{b.thread, static_cast<std::int16_t>(b.index - 1)};
    auto in_bounds = [](EventId id, const auto& events) {
        return id.index >= 0 && id.index < static_cast<std::int16_t>(events.size());
    };
    while (in_bounds(behind, from) && graph.at(behind).location == a_location) ++behind.index;
    while (in_bounds(ahead, to) && graph.at(ahead).location == b_location) --ahead.index;
    return in_bounds(behind, from) && in_bounds(ahead, to) && happens_before(graph, behind, ahead);
}

// Whether the order of seq_cst operations has to have `a` before `b`.
bool comes_before(const Graph& graph, EventId a, EventId b) {
    if (a == b) return false;
    if (a.thread == b.thread) return a.index < b.index;
    const Event &first = graph.at(a), &second = graph.at(b);
    if (first.location != second.location) return happens_before_around(graph, a, b);
    if (happens_before(graph, a, b)) return true;
    // The store that `a` has made or read is before the store of `b`.
    if (is_load(second.kind)) return false;
    return (is_load(first.kind) ? graph.rank_of(first.read_from) : first.rank) < second.rank;
}

}  // namespace

bool has_order_of_seq_cst(const Graph& graph) {
    std::vector<EventId> left;
    graph.for_each([&](EventId id, const Event& event) {
        if (event.order == Order::seq_cst) left.push_back(id);
    });
    // Takes one that no other has to come before, until there is none left.
    while (!left.empty()) {
        auto next = std::ranges::find_if(left, [&](EventId b) {
            return std::ranges::none_of(left, [&](EventId a) { return comes_before(graph, a, b); });
        });
        if (next == left.end()) return false;
        left.erase(next);
    }
    return true;
}

std::vector<std::uint64_t> signature_of(const Graph& graph) {
    std::vector<std::uint64_t> words;
    for (const auto& events : graph.threads) {
        words.push_back(UINT64_MAX);
        for (const Event& event : events) {
            words.push_back(static_cast<std::uint64_t>(event.kind) << 32 | event.rank);
            words.push_back(static_cast<std::uint64_t>(static_cast<std::uint16_t>(event.read_from.thread))
                                << 16 |
                            static_cast<std::uint16_t>(event.read_from.index));
        }
    }
    return words;
}

}  // namespace coco::model
