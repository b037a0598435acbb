// SPDX-License-Identifier: BSD-3-Clause
//
// An execution graph: the atomic operations that each thread has done, which store each load has read from,
// and the order of the stores to each location. What the C++ memory model allows is told by the graph alone,
// whatever order its events were found in. The model is that of C++20 for relaxed, acquire, release and
// seq_cst operations (RC11): coherence, read-modify-writes without a store in between, release sequences made
// of these, one order of all seq_cst operations, and no cycle of program order and reads-from. There are no
// fences.
//
// A read-modify-write is two events: its load and, right behind it, its store.
#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace coco::model {

constexpr int kThreadsMost = 3;

using Value = std::uint64_t;
enum class Order : std::uint8_t { relaxed, acquire, release, acq_rel, seq_cst };
constexpr bool acquires(Order order) { return order != Order::relaxed && order != Order::release; }
constexpr bool releases(Order order) { return order != Order::relaxed && order != Order::acquire; }

enum class Kind : std::uint8_t { load, store, load_to_modify, store_modified };
constexpr bool is_load(Kind kind) { return kind == Kind::load || kind == Kind::load_to_modify; }

// The index-th event of a thread; thread -1: what a location held in the beginning.
struct EventId {
    std::int16_t thread = -1;
    std::int16_t index = -1;
    bool operator==(const EventId&) const = default;
};
constexpr EventId kInitially{};

// A clock: so many events of each thread, those that are before in some order.
using Clock = std::array<std::uint16_t, kThreadsMost>;
void join(Clock& into, const Clock& more);
inline bool covers(const Clock& clock, EventId id) {
    return id.thread < 0 || clock[static_cast<std::size_t>(id.thread)] > id.index;
}

struct Event {
    Kind kind = Kind::load;
    Order order = Order::relaxed;
    std::int16_t location = 0;
    std::uint16_t rank = 0;     // a store's place in the order of those to its location, from 1 on
    EventId read_from = {};     // a load's; of a modified store its load's
    std::uint32_t number = 0;   // events are numbered as they are added to the graph
    Value value = 0;            // read or stored
    Clock happens_before = {};  // with itself; of a load after it has read
    Clock causes = {};          // the same by program order and reads-from alone
    Clock handed_on = {};       // a store: what who acquires it comes to know
};

struct Graph {
    std::array<std::vector<Event>, kThreadsMost> threads;
    std::uint32_t added = 0;

    const Event& at(EventId id) const {
        return threads[static_cast<std::size_t>(id.thread)][static_cast<std::size_t>(id.index)];
    }
    Event& at(EventId id) { return const_cast<Event&>(std::as_const(*this).at(id)); }
    std::uint16_t rank_of(EventId store) const { return store == kInitially ? 0 : at(store).rank; }
    std::size_t events() const;

    template <class Use>
    void for_each(Use use) const {
        for (std::int16_t t = 0; t < kThreadsMost; ++t)
            for (std::int16_t i = 0; i < static_cast<std::int16_t>(threads[t].size()); ++i)
                use(EventId{t, i}, threads[t][i]);
    }
};

// The stores to a location, in their order, after the one in the beginning.
std::vector<EventId> stores_to(const Graph& graph, int location);

// The stores that a load may read whose thread knows of `known`.
std::vector<EventId> readable(const Graph& graph, int location, const Clock& known);
bool may_read(const Graph& graph, int location, const Clock& known, EventId store);

// Where a store may come in the order of its location, by ranks. modified: what its load has read from, for
// the second half of a read-modify-write.
std::vector<std::uint16_t> places_for_store(const Graph& graph, int location, const Clock& known,
                                            const EventId* modified);
// Adds a store; those from its rank on move up.
void insert_store(Graph& graph, std::int16_t thread, Event store);

// The clock of what a thread knows before this event, which need not be there yet.
Clock known_before(const Graph& graph, EventId id);
// Works out the clocks of an event whose thread's events before it and whose source have theirs.
void settle(Graph& graph, EventId id);

// Whether one order of all seq_cst operations exists.
bool has_order_of_seq_cst(const Graph& graph);

// The signature of what is read from and of the order of stores: equal for equal executions of one program.
std::vector<std::uint64_t> signature_of(const Graph& graph);

}  // namespace coco::model
