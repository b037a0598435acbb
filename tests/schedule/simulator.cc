// SPDX-License-Identifier: BSD-3-Clause
#include "simulator.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>

#include "form.h"
#include "graphs.h"
#include "memory.h"

namespace coco::simulator {
namespace {

using algorithms::Exchange;
using schedule::Act;
using schedule::Area;
using schedule::kDone;
using schedule::Milestone;
using schedule::Place;
using schedule::Schedule;
using schedule::Step;

struct Fault : std::runtime_error {
    using runtime_error::runtime_error;
};

struct Raised {
    std::size_t call;
    Milestone milestone;
    Clock clock;
};

// One end of a message.
struct End {
    std::int32_t rank;
    Place first;
    std::int32_t blocks;
    Clock clock;                       // of its rank when it started; a send's
    std::vector<std::int64_t> values;  // a send's
};
struct Channel {
    std::vector<End> sends, receives;
};
struct UnderWay {
    Act act;
    std::int32_t peer;
    std::size_t number;  // in its channel
};

struct Rank {
    std::int32_t number;
    std::vector<UnderWay> messages;
    std::size_t call = 0;
    std::size_t step = 0;
    std::int32_t part = 0;  // block of a copy, rank of a wait
    bool in_call = false;
    bool scratch_is_mine = false;  // the guard of this call has been passed
    bool stages = false;           // its peers read staged copies of its send area
    bool has_staged = false;       // in this call
    bool aliases = false;          // its scratch is its buffer
    Clock clock;
    std::vector<Raised> raised;
    std::vector<Cell> send, recv, scratch[2], stage[2];
};

class Simulation {
  public:
    Simulation(const topology::NodeMap& map, const Calls& calls, const Executor& executor)
        : map_(map),
          calls_(calls),
          guarded_(executor.guarded),
          ranks_(static_cast<std::size_t>(map.ranks())) {
        std::size_t blocks = ranks_.size(), scratch = 0;
        for (const Call& call : calls) {
            blocks = std::max(blocks, static_cast<std::size_t>(call.segments));
            for (std::int32_t r = 0; r < map.ranks(); ++r)
                for (Area area : {Area::send, Area::recv})
                    blocks = std::max(blocks, static_cast<std::size_t>(extent(call, r, area)));
            for (const Schedule& s : call.schedules)
                scratch = std::max(scratch, static_cast<std::size_t>(s.scratch_blocks));
        }
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            Rank& rank = ranks_[r];
            rank.number = static_cast<std::int32_t>(r);
            rank.clock.assign(ranks_.size(), 0);
            rank.stages = r < executor.staged.size() && executor.staged[r];
            rank.aliases = r < executor.aliased.size() && executor.aliased[r];
            for (auto* area : {&rank.send, &rank.recv, &rank.stage[0], &rank.stage[1]}) area->resize(blocks);
            for (auto& set : rank.scratch) set.resize(scratch);
        }
    }

    Verdict run() {
        return catch_fault([&] {
            check_forms();
            for (bool moved = true; moved;) {
                moved = false;
                for (Rank& rank : ranks_)
                    while (advance(rank)) moved = true;
            }
            check_end();
        });
    }

    // For several lanes at once. Has rank `number` do one thing more. Returns: whether it could.
    bool advance_one(std::size_t number) {
        bool moved = false;
        catch_fault([&] { moved = advance(ranks_[number]); });
        return moved;
    }
    Verdict begin() {
        return catch_fault([&] { check_forms(); });
    }
    Verdict end() {
        return catch_fault([&] { check_end(); });
    }

  private:
    template <class Act>
    Verdict catch_fault(Act act) {
        if (!verdict_.fault.empty()) return verdict_;
        try {
            act();
        } catch (const Fault& fault) {
            verdict_.fault = fault.what();
        }
        return verdict_;
    }
    void check_forms() const {
        for (const Call& call : calls_) {
            std::string fault = check_form(call, map_);
            if (!fault.empty()) throw Fault(fault);
        }
    }
    void check_end() const {
        for (const Rank& rank : ranks_)
            if (rank.call < calls_.size()) throw Fault(where(rank) + "waits for ever: deadlock");
    }

    // Does one thing. Returns: false if the rank has to wait, or is through.
    bool advance(Rank& rank) {
        if (rank.call == calls_.size()) return false;
        const Call& call = call_of(rank);
        const auto& steps = call.schedules[static_cast<std::size_t>(rank.number)].steps;
        if (!rank.in_call)
            enter(rank);
        else if (rank.step == steps.size() && !is_read_out(rank))
            return false;
        else if (rank.step == steps.size())
            leave(rank, call);
        else if (rank.stages && !rank.has_staged)
            return stage(rank, call);
        else if (!take(rank, steps[rank.step]))
            return false;
        else
            go_on(rank, steps[rank.step]);
        return true;
    }

    static void go_on(Rank& rank, const Step& step) {
        bool parts = step.act == Act::copy || step.act == Act::wait;
        if (parts && ++rank.part < step.count) return;
        rank.part = 0;
        ++rank.step;
    }

    // The caller, before a call: all that it owns is overwritten, its send blocks with what this call shall
    // carry.
    void enter(Rank& rank) {
        scribble(rank);
        rank.step = 0;
        rank.part = 0;
        rank.in_call = true;
        rank.scratch_is_mine = rank.has_staged = false;
    }

    // Returns: false if the rank has to wait.
    bool stage(Rank& rank, const Call& call) {
        if (!pass_guard(rank)) return false;
        for (std::int32_t i = 0; i < extent(call, rank.number, Area::send); ++i) {
            Place place{rank.number, Area::send, i};
            write_cell(rank, rank.stage[rank.call % 2][static_cast<std::size_t>(i)], place,
                       read(rank, place));
        }
        return rank.has_staged = true;
    }

    // The caller, behind a call: looks at all blocks, and after the last one writes them once more.
    void leave(Rank& rank, const Call& call) {
        for (Area area : {Area::send, Area::recv})
            for (std::int32_t i = 0; i < extent(call, rank.number, area); ++i) {
                Place place{rank.number, area, i};
                if (read(rank, place) != expected(call, rank.call, place))
                    throw Fault(where(rank) + "finds wrong data in " + to_text(place));
            }
        rank.in_call = false;
        if (++rank.call == calls_.size()) scribble(rank);
    }

    void scribble(Rank& rank) {
        for (Area area : {Area::send, Area::recv})
            for (std::size_t i = 0; i < rank.send.size(); ++i) {
                Place place{rank.number, area, static_cast<std::int32_t>(i)};
                write(rank, place, area == Area::send ? name_of(rank.call, place) : -1);
            }
    }

    bool has_alias(const Rank& rank) const {
        const Call& call = call_of(rank);
        return rank.aliases && has_scratch(rank) &&
               (call.exchange == Exchange::bcast || schedule_of(rank).left_blocks != 0);
    }
    const schedule::Schedule& schedule_of(const Rank& rank) const {
        return call_of(rank).schedules[static_cast<std::size_t>(rank.number)];
    }
    // Whether a place is in scratch that is an alias of its owner's buffer, in the call of the rank that asks.
    bool is_alias(const Rank& rank, const Place& place) const {
        if (place.area != Area::scratch || !ranks_[static_cast<std::size_t>(place.owner)].aliases)
            return false;
        return call_of(rank).exchange == Exchange::bcast ||
               place.index < call_of(rank).schedules[static_cast<std::size_t>(place.owner)].left_blocks;
    }
    // Whether nobody reads the rank's scratch any more, should that be its buffer.
    bool is_read_out(Rank& rank) {
        for (const Rank& other : ranks_)
            if (has_alias(rank) && other.number != rank.number && is_mate(rank, other) &&
                !has_raised(other.number, rank.call, kDone, rank.clock))
                return false;
        return true;
    }

    // One part of a step. Returns: false if the rank has to wait.
    bool take(Rank& rank, const Step& step) {
        if (step.act == Act::wait && has_alias(rank) && call_of(rank).exchange == Exchange::bcast)
            return true;
        if (rank.stages && !call_of(rank).may_write_peer_recv && is_done(rank)) return true;
        if (step.act == Act::wait)
            return has_raised(step.awaited(rank.part), rank.call, step.milestone, rank.clock);
        if (step.act == Act::copy) return copy(rank, step, step.source(rank.part), step.target(rank.part));
        if (step.act == Act::send || step.act == Act::receive) return start(rank, step);
        if (step.act == Act::complete) return complete(rank, static_cast<std::size_t>(step.count));
        if (step.milestone == schedule::kArrived && has_scratch(rank) && !pass_guard(rank)) return false;
        tick(rank);
        rank.raised.push_back({rank.call, step.milestone, rank.clock});
        return true;
    }

    const Call& call_of(const Rank& rank) const { return calls_[rank.call]; }
    bool has_scratch(const Rank& rank) const { return schedule_of(rank).scratch_blocks != 0; }

    Channel& channel(std::int32_t from, std::int32_t to) {
        return channels_[static_cast<std::size_t>(from) * ranks_.size() + static_cast<std::size_t>(to)];
    }

    bool start(Rank& rank, const Step& step) {
        End end{rank.number, step.first(rank.number), step.count, {}, {}};
        if (end.first.area == Area::scratch && !pass_guard(rank)) return false;
        bool sends = step.act == Act::send;
        for (std::int32_t i = 0; i < end.blocks; ++i) {
            Place place{end.first.owner, end.first.area, end.first.index + i};
            if (sends)
                end.values.push_back(read(rank, place));
            else
                write(rank, place, -1);
            Cell& cell = cell_at(rank, place);
            sends ? void(++cell.sending) : void(cell.receiving = true);
        }
        end.clock = rank.clock;
        Channel& c = sends ? channel(rank.number, step.peer()) : channel(step.peer(), rank.number);
        auto& ends = sends ? c.sends : c.receives;
        rank.messages.push_back({step.act, step.peer(), ends.size()});
        ends.push_back(std::move(end));
        return true;
    }

    bool complete(Rank& rank, std::size_t left) {
        while (rank.messages.size() > left) {
            if (!finish(rank, rank.messages.front())) return false;
            rank.messages.erase(rank.messages.begin());
        }
        return true;
    }

    bool finish(Rank& rank, const UnderWay& message) {
        bool sends = message.act == Act::send;
        Channel& c = sends ? channel(rank.number, message.peer) : channel(message.peer, rank.number);
        if (c.sends.size() <= message.number || c.receives.size() <= message.number) return false;
        const End &from = c.sends[message.number], &to = c.receives[message.number];
        if (from.blocks != to.blocks)
            throw Fault(where(rank) + "a message of " + std::to_string(from.blocks) + " blocks from rank " +
                        std::to_string(from.rank) + " is received as " + std::to_string(to.blocks));
        const End& own = sends ? from : to;
        if (!sends) learn(rank.clock, from.clock);
        for (std::int32_t i = 0; i < own.blocks; ++i) {
            Place place{own.first.owner, own.first.area, own.first.index + i};
            Cell& cell = cell_at(rank, place);
            sends ? void(--cell.sending) : void(cell.receiving = false);
            if (sends)
                read(rank, place);
            else
                write(rank, place, from.values[static_cast<std::size_t>(i)]);
        }
        return true;
    }

    bool copy(Rank& rank, const Step& step, Place source, Place target) {
        if (step.after_target && rank.part == 0 && !has_arrived(rank, target.owner)) return false;
        if (step.after_source && !has_arrived(rank, source.owner)) return false;
        if (target.owner == rank.number && is_alias(rank, target)) return true;
        const bool reads_peer = source.area == Area::send && source.owner != rank.number;
        if (is_alias(rank, source)) source = origin_of(rank, source, target);
        if (target.area == Area::scratch && target.owner == rank.number && !pass_guard(rank)) return false;
        write(rank, target, read(rank, source));
        verdict_.read_peer_send |= reads_peer;
        verdict_.wrote_peer_recv |= target.area == Area::recv && target.owner != rank.number;
        return true;
    }
    // Where a block lies that an alias stands for.
    Place origin_of(const Rank& rank, const Place& source, const Place& target) const {
        const Call& call = call_of(rank);
        if (call.exchange != Exchange::bcast)
            return {source.owner, Area::send,
                    call.schedules[static_cast<std::size_t>(source.owner)].left_first + source.index};
        return {source.owner, source.owner == call.root ? Area::send : Area::recv, target.index};
    }
    bool has_arrived(Rank& rank, std::int32_t other) {
        return has_raised(other, rank.call, schedule::kArrived, rank.clock);
    }

    static bool is_done(const Rank& rank) {
        return !rank.raised.empty() && rank.raised.back().call == rank.call &&
               rank.raised.back().milestone == kDone;
    }

    bool pass_guard(Rank& rank) {
        if (!guarded_ || rank.scratch_is_mine || rank.call < 2) return true;
        for (const Rank& other : ranks_)
            if (other.number != rank.number && is_mate(rank, other) &&
                !has_raised(other.number, rank.call - 2, kDone, rank.clock))
                return false;
        return rank.scratch_is_mine = true;
    }

    bool is_mate(const Rank& a, const Rank& b) const {
        return map_.node[static_cast<std::size_t>(a.number)] == map_.node[static_cast<std::size_t>(b.number)];
    }

    // Learns what `number` knew when it first came to this milestone or past it.
    bool has_raised(std::int32_t number, std::size_t call, Milestone milestone, Clock& clock) {
        const auto& raised = ranks_[static_cast<std::size_t>(number)].raised;
        auto at = std::lower_bound(raised.begin(), raised.end(), std::pair{call, milestone},
                                   [](const Raised& r, auto key) {
                                       return std::pair{r.call, r.milestone} < key;
                                   });
        if (at == raised.end()) return false;
        learn(clock, at->clock);
        return true;
    }

    std::int64_t read(Rank& rank, Place place) {
        tick(rank);
        Cell& cell = cell_at(rank, place);
        if (cell.receiving)
            throw Fault(where(rank) + "reads " + to_text(place) + ", which is being received");
        std::int32_t rival = cell.read(rank.number, rank.clock);
        if (rival >= 0) race(rank, "reads ", place, rival);
        return cell.value();
    }
    void write(Rank& rank, Place place, std::int64_t value) {
        write_cell(rank, cell_at(rank, place), place, value);
    }
    static void write_cell(Rank& rank, Cell& cell, Place place, std::int64_t value) {
        tick(rank);
        if (cell.receiving || cell.sending != 0)
            throw Fault(where(rank) + "writes " + to_text(place) + ", of which a message is under way");
        std::int32_t rival = cell.write(rank.number, rank.clock, value);
        if (rival >= 0) race(rank, "writes ", place, rival);
    }
    [[noreturn]] static void race(const Rank& rank, const char* does, Place place, std::int32_t rival) {
        throw Fault(where(rank) + does + to_text(place) + " while rank " + std::to_string(rival) +
                    " touches it");
    }
    static void tick(Rank& rank) { ++rank.clock[static_cast<std::size_t>(rank.number)]; }

    Cell& cell_at(const Rank& rank, Place place) {
        Rank& owner = ranks_[static_cast<std::size_t>(place.owner)];
        bool staged = owner.stages && place.area == Area::send && rank.number != owner.number;
        auto& cells = staged                     ? owner.stage[rank.call % 2]
                      : place.area == Area::send ? owner.send
                      : place.area == Area::recv ? owner.recv
                                                 : owner.scratch[rank.call % 2];
        return cells[static_cast<std::size_t>(place.index)];
    }

    // A name that no other block of the run has.
    std::int64_t name_of(std::size_t call, Place sent) const {
        auto blocks = static_cast<std::int64_t>(ranks_.front().send.size());
        return (static_cast<std::int64_t>(call) * map_.ranks() + sent.owner) * blocks + sent.index;
    }
    std::int64_t expected(const Call& call, std::size_t number, Place place) const {
        if (place.area == Area::send) return name_of(number, place);
        if (call.exchange == Exchange::bcast) return name_of(number, {call.root, Area::send, place.index});
        bool personal = call.exchange == Exchange::alltoall;
        if (call.neighborhoods.empty())
            return name_of(number, {place.index, Area::send, personal ? place.owner : 0});
        for (const schedule::Edge& edge : call.neighborhoods[static_cast<std::size_t>(place.owner)].incoming)
            if (edge.received == place.index)
                return name_of(number, {edge.sender, Area::send, personal ? edge.sent : 0});
        return -1;  // from nobody: as the caller left it
    }
    static std::string where(const Rank& rank) {
        return "rank " + std::to_string(rank.number) + ", call " + std::to_string(rank.call) + ", step " +
               std::to_string(rank.step) + ": ";
    }

    const topology::NodeMap& map_;
    const Calls& calls_;
    bool guarded_;
    std::vector<Rank> ranks_;
    std::vector<Channel> channels_ = std::vector<Channel>(ranks_.size() * ranks_.size());
    Verdict verdict_;
};

}  // namespace

namespace {
const Executor kOrdinary;
}

Call make_call(const algorithms::Algorithm& algorithm, Exchange exchange, const topology::NodeMap& map,
               std::int32_t root, std::int32_t segments, const algorithms::Parameters& parameters) {
    Call call{exchange, root, segments, algorithm.reads_peer_send(), algorithm.writes_peer_recv(), {}};
    for (std::int32_t r = 0; r < map.ranks(); ++r)
        call.schedules.push_back(algorithm.make_schedule({exchange, r, &map, root, segments, parameters}));
    return call;
}

Call make_neighbor_call(const algorithms::Algorithm& algorithm, Exchange exchange,
                        const topology::NodeMap& map,
                        const std::vector<schedule::Neighborhood>& neighborhoods,
                        const algorithms::Parameters& parameters, const std::vector<bool>& straight) {
    Call call{exchange, 0, 1, algorithm.reads_peer_send(), algorithm.writes_peer_recv(), {}, neighborhoods};
    auto shares = shares_of(map, neighborhoods, algorithm.cut);
    std::vector<schedule::Bundles> bundles;
    const bool bundled = algorithm.needs_bundles();
    if (bundled) bundles = bundles_of(map, neighborhoods, exchange == Exchange::alltoall, parameters.leaders);
    std::vector<schedule::Combining> combining;
    if (takes(algorithm, algorithms::Parameter::threshold))
        combining = combine(map, neighborhoods, parameters.threshold, parameters.depth);
    auto is_straight = [&](std::int32_t rank) {
        auto i = static_cast<std::size_t>(rank);
        return i < straight.size() && straight[i];
    };
    for (std::int32_t r = 0; r < map.ranks(); ++r) {
        auto i = static_cast<std::size_t>(r);
        algorithms::Shape shape{.exchange = exchange, .rank = r, .map = &map, .parameters = parameters};
        shape.neighborhood = &neighborhoods[i];
        shape.share = &shares[i];
        if (bundled) shape.bundles = &bundles[i];
        const auto& incoming = neighborhoods[i].incoming;
        if (!combining.empty() && !is_straight(r)) shape.combined_sends = &combining[i].sends;
        if (!combining.empty() && (incoming.empty() || !is_straight(incoming[0].sender)))
            shape.combined_receives = &combining[i].receives;
        call.schedules.push_back(algorithm.make_schedule(shape));
    }
    return call;
}

Verdict simulate(const topology::NodeMap& map, const Calls& calls, const Executor& executor) {
    return Simulation(map, calls, executor).run();
}

Verdict simulate_together(const topology::NodeMap& map, const std::vector<Calls>& lanes, std::uint32_t seed) {
    std::vector<Simulation> simulations;
    for (const Calls& calls : lanes) simulations.emplace_back(map, calls, kOrdinary).begin();
    std::mt19937 random(seed);
    const auto ranks = static_cast<std::size_t>(map.ranks());
    // Draws until no rank gets ahead in any lane.
    std::vector<std::size_t> all(lanes.size() * ranks);
    std::iota(all.begin(), all.end(), std::size_t{0});
    for (bool moved = true; moved;) {
        moved = false;
        std::ranges::shuffle(all, random);
        for (std::size_t one : all)
            if (simulations[one / ranks].advance_one(one % ranks)) moved = true;
    }
    Verdict first = simulations.front().end();
    for (Simulation& simulation : simulations)
        if (Verdict verdict = simulation.end(); !verdict.fault.empty()) return verdict;
    return first;
}

}  // namespace coco::simulator
