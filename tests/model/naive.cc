// SPDX-License-Identifier: BSD-3-Clause
#include "naive.h"

namespace coco::model {
namespace {

class Search {
  public:
    explicit Search(const Program& program) : program_(program) { go_on({}, Done(program.size())); }
    std::set<std::vector<std::uint64_t>> found;

  private:
    using Done = std::vector<std::size_t>;  // steps, by thread

    void go_on(const Graph& graph, const Done& done) {
        if (!seen_.insert(signature_of(graph)).second) return;
        bool ended = true;
        for (std::size_t t = 0; t < program_.size(); ++t) {
            if (done[t] == program_[t].size()) continue;
            ended = false;
            Done more = done;
            ++more[t];
            do_step(graph, static_cast<std::int16_t>(t), program_[t][done[t]], more);
        }
        if (ended && has_order_of_seq_cst(graph)) found.insert(signature_of(graph));
    }

    void do_step(const Graph& graph, std::int16_t thread, const Step& step, const Done& done) {
        if (step.does == Does::store) {
            add_stores(graph, thread, {Kind::store, step}, kInitially, done);
            return;
        }
        const bool modifies = step.does == Does::modify;
        for (EventId source : readable(graph, step.location, known_before(graph, next(graph, thread)))) {
            Graph read = graph;
            Event load = event_of({modifies ? Kind::load_to_modify : Kind::load, step});
            load.read_from = source;
            read.threads[static_cast<std::size_t>(thread)].push_back(load);
            settle(read, last(read, thread));
            if (modifies)
                add_stores(read, thread, {Kind::store_modified, step}, source, done);
            else
                go_on(read, done);
        }
    }

    struct Part {
        Kind kind;
        const Step& step;
    };
    static Event event_of(const Part& part) {
        Event event{};
        event.kind = part.kind;
        event.order = part.step.order;
        event.location = static_cast<std::int16_t>(part.step.location);
        return event;
    }

    void add_stores(const Graph& graph, std::int16_t thread, const Part& part, EventId source,
                    const Done& done) {
        const Clock known = known_before(graph, next(graph, thread));
        const EventId* modified = part.kind == Kind::store_modified ? &source : nullptr;
        for (std::uint16_t rank : places_for_store(graph, part.step.location, known, modified)) {
            Graph stored = graph;
            Event store = event_of(part);
            store.rank = rank;
            store.read_from = source;
            insert_store(stored, thread, store);
            settle(stored, last(stored, thread));
            go_on(stored, done);
        }
    }

    static EventId next(const Graph& graph, std::int16_t thread) {
        return {thread, static_cast<std::int16_t>(graph.threads[static_cast<std::size_t>(thread)].size())};
    }
    static EventId last(const Graph& graph, std::int16_t thread) {
        return {thread, static_cast<std::int16_t>(next(graph, thread).index - 1)};
    }

    const Program& program_;
    std::set<std::vector<std::uint64_t>> seen_;
};

}  // namespace

std::set<std::vector<std::uint64_t>> executions_of(const Program& program) { return Search(program).found; }

}  // namespace coco::model
