// SPDX-License-Identifier: BSD-3-Clause
#include "revisit.h"

#include <algorithm>
#include <utility>

namespace coco::model {
namespace {

// How many events of each thread stay when `load` is read anew: those added before it, it, and those that
// lead to the store.
Clock kept_for(const Graph& graph, const Event& load, const Clock& causes) {
    Clock kept{};
    for (std::size_t t = 0; t < kept.size(); ++t) {
        const auto& events = graph.threads[t];
        kept[t] = causes[t];
        while (kept[t] < events.size() && events[kept[t]].number <= load.number) ++kept[t];
    }
    return kept;
}

// Whether the event is as it would be if it had been added last of all that was there by then or leads to the
// store: a load of the last store, or the last store, which nobody has read.
bool is_added_last(const Graph& graph, EventId id, const Clock& causes) {
    const Event& event = graph.at(id);
    const std::uint16_t rank = is_load(event.kind) ? graph.rank_of(event.read_from) : event.rank;
    bool last = true;
    graph.for_each([&](EventId other_id, const Event& other) {
        if (other.number > event.number && !covers(causes, other_id)) return;
        if (is_load(other.kind))
            last = last && (is_load(event.kind) || other.read_from != id);
        else
            last = last && (other.location != event.location || other.rank <= rank);
    });
    return last;
}

bool may_be_taken_back(const Graph& graph, EventId load, const Clock& kept, const Clock& causes) {
    if (!is_added_last(graph, load, causes)) return false;
    bool may = true;
    graph.for_each([&](EventId id, const Event&) {
        if (!covers(kept, id)) may = may && is_added_last(graph, id, causes);
    });
    return may;
}

Graph without(const Graph& graph, const Clock& kept) {
    Graph rest = graph;
    for (std::size_t t = 0; t < kept.size(); ++t) rest.threads[t].resize(kept[t]);
    std::vector<int> locations;
    rest.for_each([&](EventId, const Event& event) { locations.push_back(event.location); });
    std::ranges::sort(locations);
    locations.erase(std::unique(locations.begin(), locations.end()), locations.end());
    for (int location : locations) {
        std::uint16_t rank = 0;
        for (EventId id : stores_to(rest, location)) rest.at(id).rank = ++rank;
    }
    return rest;
}

void revisit(const Graph& graph, const NewStore& store, EventId load,
             const std::function<void(Graph&&)>& use) {
    const Clock kept = kept_for(graph, graph.at(load), store.causes);
    if (!may_be_taken_back(graph, load, kept, store.causes)) return;
    Graph rest = without(graph, kept);
    const EventId id{store.thread,
                     static_cast<std::int16_t>(rest.threads[static_cast<std::size_t>(store.thread)].size())};
    const Event& event = store.event;
    const EventId* modified = event.kind == Kind::store_modified ? &event.read_from : nullptr;
    for (std::uint16_t rank : places_for_store(rest, event.location, store.known, modified)) {
        Graph next = rest;
        Event placed = event;
        placed.rank = rank;
        insert_store(next, store.thread, placed);
        next.at(load).read_from = id;
        if (may_read(next, event.location, known_before(next, load), id)) use(std::move(next));
    }
}

}  // namespace

void for_each_revisit(const Graph& graph, const NewStore& store, const std::function<void(Graph&&)>& use) {
    graph.for_each([&](EventId id, const Event& event) {
        if (is_load(event.kind) && event.location == store.event.location && id.thread != store.thread &&
            !covers(store.causes, id))
            revisit(graph, store, id, use);
    });
}

}  // namespace coco::model
