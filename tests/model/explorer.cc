// SPDX-License-Identifier: BSD-3-Clause
#include "explorer.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "fiber.h"
#include "memory.h"
#include "revisit.h"

namespace coco::model {
namespace {

constexpr std::size_t kEventsMost = 2000;

enum class State : std::uint8_t {
    runs,
    awaits_store,  // which its load reads in this graph, and which has not been run yet
    at_new_event,  // the graph has no more of this thread
    looked,        // in vain, for the last time
    sleeps,
    failed,
    ended,
};

struct Thread {
    State state = State::runs;
    std::uint16_t done = 0;  // events
    Clock known{}, causes{};
    std::vector<EventId> looks{};  // since it has paused or stored
    EventId look_before_sleep{};
    int looks_left = 0;
    bool in_modify = false;  // between the two halves of a read-modify-write
};

class Explorer {
  public:
    Explorer(const Scenario& scenario, const Mutation& mutation, bool keep_signatures)
        : scenario_(scenario),
          mutation_(mutation),
          keep_signatures_(keep_signatures),
          locations_(kCells, -1) {}

    Result explore() {
        put_by_.push_back({});
        while (!put_by_.empty() && result_.error.empty()) {
            graph_ = std::move(put_by_.back());
            put_by_.pop_back();
            run();
        }
        return std::move(result_);
    }

    // On a fiber.
    Value load(int cell, std::size_t bytes, const volatile void* at, Order order, Kind kind);
    void store(int cell, Value value, Order order, Kind kind, EventId modified);
    void access(int cell, std::size_t bytes, Races::Access access);
    void note_look();
    void note_goal();
    void look_again();
    void sleep_while(int cell, const volatile void* word, Value expected);
    void fail(const std::string& what);
    Order note(Place place, Does does, Order order);
    bool is_broken(Place place, Fault fault) const {
        const auto found = mutation_.find(place);
        return found != mutation_.end() && found->second == fault;
    }
    void set_in_modify(bool in) { me().in_modify = in; }
    EventId last_event() {
        return {static_cast<std::int16_t>(running_fiber()), static_cast<std::int16_t>(me().done - 1)};
    }
    EventId source_of_last() { return graph_.at(last_event()).read_from; }

  private:
    Thread& me() { return threads_[static_cast<std::size_t>(running_fiber())]; }

    void begin_run();
    void run();
    bool resume(int thread);
    void follow_graph();
    bool is_followed() const;
    void extend_graph();
    int next_to_extend() const;
    void judge();
    bool is_stale(EventId look) const;
    bool is_rung_for(const Thread& thread) const;
    bool would_go_on(const Thread& thread) const;
    void pause_as(State state);
    void give_up();
    int location_of(int cell);
    bool is_new() { return me().done >= graph_.threads[static_cast<std::size_t>(running_fiber())].size(); }
    void await_turn();
    bool is_run(EventId id) const {
        return id.thread < 0 || threads_[static_cast<std::size_t>(id.thread)].done > id.index;
    }
    void add_load(Event load);
    void add_store(Event store);
    void settle_last();
    void check_same(const Event& then, Kind kind, int location, Order order);

    const Scenario& scenario_;
    const Mutation& mutation_;
    const bool keep_signatures_;
    Result result_;
    std::vector<Graph> put_by_;
    std::vector<std::int16_t> locations_;  // by cell
    std::int16_t locations_known_ = 0;

    // State of this run.
    Graph graph_;
    std::array<Thread, kThreadsMost> threads_{};
    Races races_;
    std::string failure_;
    bool extends_ = false, given_up_ = false;
};

Explorer* g_explorer = nullptr;

void Explorer::begin_run() {
    renew_memory();
    races_.begin();
    failure_.clear();
    extends_ = given_up_ = false;
    for (int t = 0; t < scenario_.ranks; ++t) {
        threads_[static_cast<std::size_t>(t)] = {.looks_left = scenario_.looks};
        start_fiber(t, [this, t] { scenario_.play(t); });
    }
    enter_run();
    scenario_.prepare();
    leave_run();
}

bool Explorer::resume(int thread) {
    Thread& it = threads_[static_cast<std::size_t>(thread)];
    it.state = State::runs;
    enter_run();
    if (run_fiber(thread)) it.state = State::ended;
    leave_run();
    return !given_up_;
}

// Every event of the graph, each load after the store that it reads.
void Explorer::follow_graph() {
    for (bool moved = true; moved;) {
        moved = false;
        for (int t = 0; t < scenario_.ranks; ++t) {
            Thread& thread = threads_[static_cast<std::size_t>(t)];
            const bool can = thread.state == State::runs ||
                             (thread.state == State::awaits_store &&
                              is_run(graph_.threads[static_cast<std::size_t>(t)][thread.done].read_from));
            if (!can) continue;
            moved = true;
            if (!resume(t)) return;
        }
    }
}

bool Explorer::is_followed() const {
    for (std::size_t t = 0; t < threads_.size(); ++t)
        if (threads_[t].done < graph_.threads[t].size()) return false;
    return true;
}

// The first that can go on; but a read-modify-write is brought to its end before.
int Explorer::next_to_extend() const {
    int next = -1;
    for (int t = scenario_.ranks - 1; t >= 0; --t)
        if (threads_[static_cast<std::size_t>(t)].state == State::at_new_event) next = t;
    for (int t = 0; t < scenario_.ranks; ++t) {
        const Thread& thread = threads_[static_cast<std::size_t>(t)];
        if (thread.state == State::at_new_event && thread.in_modify) next = t;
    }
    return next;
}

void Explorer::extend_graph() {
    extends_ = true;
    for (int t = next_to_extend(); t >= 0; t = next_to_extend())
        if (!resume(t)) return;
}

void Explorer::run() {
    begin_run();
    follow_graph();
    if (failure_.empty() && !is_followed()) failure_ = "a graph that cannot be followed";
    if (failure_.empty()) extend_graph();
    if (!failure_.empty()) {
        if (!extends_ || has_order_of_seq_cst(graph_)) result_.error = failure_;
    } else if (!given_up_ && has_order_of_seq_cst(graph_)) {
        judge();
    }
}

bool Explorer::is_stale(EventId look) const {
    const Event& load = graph_.at(look);
    return graph_.rank_of(load.read_from) != stores_to(graph_, load.location).size();
}

// Whether its next look, if all that is stored by now is seen, would find another value than the last one
// did.
bool Explorer::would_go_on(const Thread& thread) const {
    if (thread.state == State::sleeps) return is_stale(thread.looks.back());
    return std::ranges::any_of(thread.looks, [this](EventId look) { return is_stale(look); });
}

// Whether the bell was rung, before the thread fell asleep, by who has stored what it has not seen.
bool Explorer::is_rung_for(const Thread& thread) const {
    const EventId ring = graph_.at(thread.looks.back()).read_from;
    const EventId store = stores_to(graph_, graph_.at(thread.look_before_sleep).location).back();
    return ring.thread == store.thread && ring.index > store.index;
}

// Judges the end of the run.
void Explorer::judge() {
    bool all_ended = true, missed = false;
    for (int t = 0; t < scenario_.ranks; ++t) {
        const Thread& thread = threads_[static_cast<std::size_t>(t)];
        if (thread.state == State::ended) continue;
        all_ended = false;
        if (would_go_on(thread)) {
            ++result_.cut;
            return;
        }
        if (thread.state != State::sleeps || !is_stale(thread.look_before_sleep)) continue;
        missed = true;
        if (is_rung_for(thread)) result_.error = "a ring is lost";
    }
    if (missed)
        ++result_.missed;
    else if (all_ended)
        ++result_.executions;
    else
        result_.error = "deadlock";
    if (all_ended && keep_signatures_)
        result_.repeated |= !result_.signatures.insert(signature_of(graph_)).second;
}

void Explorer::pause_as(State state) {
    me().state = state;
    pause_fiber();
    leave_run();  // the thread goes on within the engine
}

// The rest of this run is not looked at.
void Explorer::give_up() {
    given_up_ = true;
    for (;;) pause_as(State::failed);
}

void Explorer::fail(const std::string& what) {
    OutsideRun outside;
    if (failure_.empty()) failure_ = what;
    give_up();
}

int Explorer::location_of(int cell) {
    std::int16_t& location = locations_[static_cast<std::size_t>(cell)];
    if (location < 0) location = locations_known_++;
    return location;
}

void Explorer::access(int cell, std::size_t bytes, Races::Access access) {
    OutsideRun outside;
    const std::size_t cells = (bytes + kCellBytes - 1) / kCellBytes;
    const std::string wrong = races_.note(running_fiber(), me().known, cell, cells, access);
    if (!wrong.empty()) fail(wrong);
}

// New events are added when all of the graph has been run, one thread after the other.
void Explorer::await_turn() {
    if (!extends_) pause_as(State::at_new_event);
    if (graph_.events() > kEventsMost) fail("endless");
}

void Explorer::check_same(const Event& then, Kind kind, int location, Order order) {
    if (then.kind != kind || then.location != location || then.order != order)
        fail("the scenario is not the same in each run");
}

void Explorer::add_load(Event load) {
    std::vector<EventId> stores = readable(graph_, load.location, me().known);
    auto& events = graph_.threads[static_cast<std::size_t>(running_fiber())];
    load.number = graph_.added++;
    events.push_back(load);
    for (std::size_t i = 0; i < stores.size(); ++i) {
        events.back().read_from = stores[i];
        if (i + 1 < stores.size()) put_by_.push_back(graph_);
    }
}

void Explorer::add_store(Event store) {
    const auto thread = static_cast<std::int16_t>(running_fiber());
    const NewStore added{thread, store, me().known, me().causes};
    for_each_revisit(graph_, added, [this](Graph&& graph) { put_by_.push_back(std::move(graph)); });
    const EventId* modified = store.kind == Kind::store_modified ? &store.read_from : nullptr;
    const std::vector<std::uint16_t> places = places_for_store(graph_, store.location, me().known, modified);
    if (places.empty()) give_up();  // another read-modify-write has taken that place
    for (std::size_t i = 0; i + 1 < places.size(); ++i) {
        Graph other = graph_;
        store.rank = places[i];
        insert_store(other, thread, store);
        put_by_.push_back(std::move(other));
    }
    store.rank = places.back();
    insert_store(graph_, thread, store);
}

Value value_at(const volatile void* at, std::size_t bytes) {
    Value value = 0;
    std::memcpy(&value, const_cast<const void*>(at), bytes);
    return value;
}

Value Explorer::load(int cell, std::size_t bytes, const volatile void* at, Order order, Kind kind) {
    OutsideRun outside;
    const int location = location_of(cell);
    const auto t = static_cast<std::size_t>(running_fiber());
    if (is_new()) {
        await_turn();
        add_load({.kind = kind, .order = order, .location = static_cast<std::int16_t>(location)});
    }
    check_same(graph_.threads[t][me().done], kind, location, order);
    while (!is_run(graph_.threads[t][me().done].read_from)) pause_as(State::awaits_store);
    access(cell, kCellBytes, Races::Access::atomic_read);
    Event& event = graph_.threads[t][me().done];
    event.value = event.read_from == kInitially ? value_at(at, bytes) : graph_.at(event.read_from).value;
    settle_last();
    return event.value;
}

void Explorer::store(int cell, Value value, Order order, Kind kind, EventId modified) {
    OutsideRun outside;
    const int location = location_of(cell);
    const auto t = static_cast<std::size_t>(running_fiber());
    if (is_new()) {
        await_turn();
        Event added{.kind = kind, .order = order, .location = static_cast<std::int16_t>(location)};
        added.read_from = modified;
        added.value = value;
        added.causes = me().causes;
        ++added.causes[t];
        add_store(added);
    }
    check_same(graph_.threads[t][me().done], kind, location, order);
    access(cell, kCellBytes, Races::Access::atomic_write);
    Event& event = graph_.threads[t][me().done];
    if (event.value != value) fail("the scenario is not the same in each run");
    me().looks.clear();
    settle_last();
}

// The thread has done one event more.
void Explorer::settle_last() {
    Thread& thread = me();
    ++thread.done;
    settle(graph_, last_event());
    thread.known = graph_.at(last_event()).happens_before;
    thread.causes = graph_.at(last_event()).causes;
}

void Explorer::note_goal() { ++result_.goals; }

void Explorer::note_look() {
    OutsideRun outside;
    me().looks.push_back(last_event());
}

void Explorer::look_again() {
    OutsideRun outside;
    if (me().looks.empty()) return;
    if (me().looks_left-- <= 0)
        for (;;) pause_as(State::looked);
    me().looks.clear();
}

void Explorer::sleep_while(int cell, const volatile void* word, Value expected) {
    me().look_before_sleep = me().looks.back();
    // The kernel compares under a lock of its own.
    const Value value = load(cell, sizeof(std::uint32_t), word, Order::seq_cst, Kind::load);
    note_look();
    if (value != expected) return;
    OutsideRun outside;
    for (;;) pause_as(State::sleeps);
}

Order Explorer::note(Place place, Does does, Order order) {
    OutsideRun outside;
    result_.places.emplace(place, Operation{does, order});
    if (is_broken(place, Fault::weaker)) return Order::relaxed;
    if (is_broken(place, Fault::stronger)) return Order::seq_cst;
    return order;
}

bool is_in_run() { return running_fiber() >= 0; }

}  // namespace

Result explore(const Scenario& scenario, const Mutation& mutation, bool keep_signatures) {
    auto explorer = std::make_unique<Explorer>(scenario, mutation, keep_signatures);
    g_explorer = explorer.get();
    Result result = explorer->explore();
    g_explorer = nullptr;
    return result;
}

Value load(const volatile void* at, std::size_t bytes, Order order, Place place) {
    const int cell = cell_of(at);
    if (!is_in_run() || cell < 0) return value_at(at, bytes);
    const bool waits = acquires(order);  // those who wait acquire, unless that is broken
    order = g_explorer->note(place, Does::load, order);
    const Value value = g_explorer->load(cell, bytes, at, order, Kind::load);
    if (waits) g_explorer->note_look();
    return g_explorer->is_broken(place, Fault::at_once) ? UINT64_MAX : value;
}

void store(volatile void* at, std::size_t bytes, Value value, Order order, Place place) {
    const int cell = cell_of(at);
    if (!is_in_run() || cell < 0) {
        std::memcpy(const_cast<void*>(at), &value, bytes);
        return;
    }
    order = g_explorer->note(place, Does::store, order);
    if (!g_explorer->is_broken(place, Fault::left_out))
        g_explorer->store(cell, value, order, Kind::store, kInitially);
}

Value modify(volatile void* at, std::size_t bytes, const std::function<Value(Value)>& change, Order order,
             Place place) {
    const int cell = cell_of(at);
    if (!is_in_run() || cell < 0) {
        const Value before = value_at(at, bytes), after = change(before);
        std::memcpy(const_cast<void*>(at), &after, bytes);
        return before;
    }
    order = g_explorer->note(place, Does::modify, order);
    if (g_explorer->is_broken(place, Fault::left_out)) return 0;
    const Value before = g_explorer->load(cell, bytes, at, order, Kind::load_to_modify);
    g_explorer->set_in_modify(true);
    const Value mask = bytes == sizeof(Value) ? UINT64_MAX : (Value{1} << 8 * bytes) - 1;
    g_explorer->store(cell, change(before) & mask, order, Kind::store_modified, g_explorer->source_of_last());
    g_explorer->set_in_modify(false);
    return before;
}

void plain_access(const volatile void* at, std::size_t bytes, bool writes) {
    if (!is_in_run() || bytes == 0) return;
    const int cell = cell_of(at);
    if (cell < 0) return;
    const std::size_t skew = reinterpret_cast<std::uintptr_t>(at) % kCellBytes;
    g_explorer->access(cell, bytes + skew, writes ? Races::Access::write : Races::Access::read);
}

void look_again() {
    if (is_in_run()) g_explorer->look_again();
}

void sleep_while(const volatile void* word, Value expected) {
    g_explorer->sleep_while(cell_of(word), word, expected);
}

void note_goal() {
    if (is_in_run()) g_explorer->note_goal();
}

void expect(bool holds, const char* what) {
    if (!holds && is_in_run()) g_explorer->fail(what);
}

}  // namespace coco::model
