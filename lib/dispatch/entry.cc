// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/entry.h"

#include <algorithm>
#include <optional>

#include "base/index.h"
#include "comm/find.h"
#include "comm/handles.h"
#include "comm/look_up.h"
#include "dispatch/agreement.h"
#include "dispatch/alias.h"
#include "dispatch/datatype.h"
#include "dispatch/in_force.h"
#include "dispatch/known.h"
#include "dispatch/read.h"
#include "dispatch/side_args.h"
#include "exec/call.h"
#include "heap/heap.h"
#include "mpi/library.h"
#include "os/clock.h"

namespace coco::dispatch {

constinit thread_local int t_inside = 0;

namespace {

using algorithms::Collective;

// Over several nodes alltoallv and alltoallw go by the largest block of the last call, which all have heard
// of.
bool is_bounded(const CommonArguments& common, const comm::Comm& comm) {
    return !common.has_block && comm.wire != nullptr && !is_neighbor(common.facts.collective);
}

policy::Facts choice_facts_of(const comm::Comm& comm, const CommonArguments& common) {
    policy::Facts facts = comm.facts();
    facts.collective = common.facts.collective;
    if (common.has_block) facts.block_bytes = common.block_bytes;
    if (!is_neighbor(common.facts.collective)) return facts;
    facts.block_is_own = !comm.neighbors->sizes_agree;
    facts.degree = comm.degree();
    facts.most_blocks = static_cast<std::uint64_t>(comm.neighbors->most_blocks);
    return facts;
}

// Counts the call. Requires: all ranks make it, and ask.
const choose::Choice& choose_for(comm::Comm& comm, const CommonArguments& common, TakeResult& taken) {
    BoardAgreement agreement(comm);
    const settings::Learn& learn = learning_in_force();
    const choose::Learning learning{learn.is_on, learn.is_restless, &agreement, &the_journal()};
    const choose::Choice& choice =
        comm.choices.choose(the_policy(), choice_facts_of(comm, common), is_bounded(common, comm), learning);
    if (agreement.was_asked()) taken.measured_from_ns = 0;  // what it took is no part of the call
    return choice;
}

// Whether this thread's last call of the collective that was looked at here was measured, so that the next
// one is likely to be. Then its time begins as it comes in: what it takes to read it, or to know it again, is
// a part of what the call takes.
constinit thread_local bool t_measures[algorithms::kCollectives] = {};

void expect_to_measure(Collective collective, TakeResult& taken) {
    bool& measures = t_measures[base::index(collective)];
    if (!measures) [[likely]]
        return;
    measures = false;
    taken.measured_from_ns = os::now_ns();
}

void begin_measuring(Collective collective, const choose::Choice& chosen, TakeResult& taken) {
    if (!chosen.is_measured) return;
    taken.measured_for = chosen.cell;
    if (taken.measured_from_ns == 0) taken.measured_from_ns = os::now_ns();
    t_measures[base::index(collective)] = true;
}

// Of a call that is answered here; one that is handed back is measured to its end.
void end_measuring(TakeResult& taken) {
    if (taken.measured_for == nullptr || !taken.taken) return;
    taken.measured_for->note(taken.measured_from_ns, os::now_ns());
    taken.measured_for = nullptr;
}

// Keeps what a call has told of sizes for the choice of the next one. Returns: whether the call was of its
// cell's size. (All ranks find the same, but in a bcast.)
bool note_block_sizes(comm::Comm& comm, const choose::Cell& cell, const exec::Outcome& outcome) {
    if ((outcome.lacking || outcome.truncated) && is_rooted(cell.collective))
        comm.choices.note_other_length();
    if (!cell.goes_by_told_size || outcome.size_class == cell.size_class ||
        outcome.reason != stats::Reason::none)
        return true;
    comm.choices.note_size_class(cell.collective, outcome.size_class);
    return false;
}

std::uint64_t sent_bytes(const exec::Call& call, const comm::Comm& comm) {
    if (call.common.collective == Collective::bcast)
        return comm.rank == call.common.root ? call.local.bytes : 0;
    bool personal = base::is_personal(call.common.collective);
    const std::uint64_t blocks = base::index(send_blocks_of(call.common.collective, comm));
    if (!call.common.sized) return blocks * call.common.block_bytes;
    std::uint64_t total = 0;
    for (const blocks::BlockAt& block : call.local.send.blocks) total += block.bytes;
    return personal ? total : total * blocks;
}

std::uint64_t largest_block(const exec::Call& call, const CommonArguments& common) {
    if (common.has_block) return common.block_bytes;
    std::uint64_t largest = 0;
    for (const blocks::BlockAt& block : call.local.send.blocks) largest = std::max(largest, block.bytes);
    return largest;
}

void hand_back(TakeResult& taken, stats::Reason reason) {
    taken.taken = false;
    taken.count.reason = reason;
    taken.count.algorithm = "mpi";
}

// Hands this call back, and all such calls on the communicator, whatever they name: so that small calls of
// the MPI library's are as fast as without libcoco.
void hand_back_for_good(const Args& args, TakeResult& taken, stats::Reason reason) {
    if (taken.begin_ns == 0) remember_closed(args);
    hand_back(taken, reason);
}

void count_amounts(const exec::Call& call, const comm::Comm& comm, const CommonArguments& common,
                   TakeResult& taken) {
    taken.count.bytes = sent_bytes(call, comm);
    taken.count.block_bytes = largest_block(call, common);
}

// The same for a call that is handed back without a look at its buffers.
void count_amounts(const Args& args, const comm::Comm& comm, const CommonArguments& common,
                   TakeResult& taken) {
    if (taken.begin_ns == 0 || !common.valid) return;
    exec::Call call{.common = common.facts, .local = {}};
    read_local(args, comm, common, workspace(), call.local);
    count_amounts(call, comm, common, taken);
}

// Runs a call and, when calls are counted, counts what it put on the wire: also if it is handed back, as the
// refusal travelled.
exec::Outcome run_counted(comm::Comm& comm, const exec::Call& call, const choose::Choice& chosen,
                          TakeResult& taken) {
    const mpi::Wire* wire = taken.begin_ns != 0 ? comm.wire.get() : nullptr;
    const bool neighbor = is_neighbor(call.common.collective);
    if (taken.begin_ns != 0 && neighbor && wire == nullptr) wire = comm.neighbors->wire.get();
    std::uint64_t messages = wire != nullptr ? wire->messages_sent() : 0;
    std::uint64_t bytes = wire != nullptr ? wire->bytes_sent() : 0;
    begin_measuring(call.common.collective, chosen, taken);
    exec::Outcome outcome = exec::run(comm, comm.lane, call, *chosen.algorithm, chosen.parameters);
    if (wire != nullptr) {
        taken.count.messages = wire->messages_sent() - messages;
        taken.count.wire_bytes = wire->bytes_sent() - bytes;
    }
    return outcome;
}

// The error that the MPI library has for a call with this outcome. MPICH reports a bcast that brings less
// than there is room for, whatever the sizes; Open MPI does not mind.
int error_of(const exec::Outcome& outcome) {
    if (outcome.lacking && mpi::lib().manners.refuses_short_bcasts) return mpi::lib().constants.err_other;
    return outcome.truncated ? mpi::lib().constants.err_truncate : mpi::kSuccess;
}

void run_chosen(const Args& args, comm::Comm& comm, const CommonArguments& common,
                const choose::Choice& chosen, std::uint64_t generation, TakeResult& taken) {
    exec::Call call{.common = common.facts, .local = {}};
    read_local(args, comm, common, workspace(), call.local);
    bool counting = taken.begin_ns != 0;
    comm.lane.channel.timed = counting;
    comm.lane.channel.wait_ns = 0;
    bool bounded = is_bounded(common, comm);  // the next call may be chosen for anew
    const bool on_device = call.local.send.on_device || call.local.recv.on_device;
    if (!counting && !bounded && !on_device) remember_chosen(args, common, comm, chosen, &call, generation);
    std::optional<SentCopy> copy;
    if (common.sends_copy) [[unlikely]]
        copy.emplace(call.local.send);
    exec::Outcome outcome = run_counted(comm, call, chosen, taken);
    if (counting) count_amounts(call, comm, common, taken);
    if (outcome.closes) [[unlikely]]
        comm::close_for_devices(comm);
    if (outcome.reason != stats::Reason::none) return hand_back(taken, outcome.reason);
    taken.taken = true;
    if (!note_block_sizes(comm, *chosen.cell, outcome)) taken.measured_for = nullptr;
    end_measuring(taken);
    if (counting) {
        taken.count.algorithm = outcome.ran->name.data();
        taken.count.wait_ns = comm.lane.channel.wait_ns;
        taken.count.staged = outcome.staged;
        taken.count.total_ns = os::now_ns() - taken.begin_ns;
        stats::record(taken.count);
    }
    taken.error = common.refused_alias ? mpi::lib().constants.err_buffer : error_of(outcome);
}

void take_open(const Args& args, comm::Comm& comm, TakeResult& taken) {
    if (is_neighbor(args.collective)) {
        // Looked at before anything is made that nobody will use.
        const auto& forced = the_policy().forced[base::index(args.collective)];
        if (forced && forced->algorithm == nullptr)
            return hand_back_for_good(args, taken, stats::Reason::disabled);
        const comm::Neighbors& near = comm::look_up_neighbors(comm);
        if (near.closed != stats::Reason::none) return hand_back_for_good(args, taken, near.closed);
        // In graphs so sparse the MPI library's senders run ahead as far as they like, ours as far as slots
        // go: two edges among 4 ranks took 8 to 12 times as long as Open MPI's, below 512 B.
        if (near.has_rank_without_edges && !forced)
            return hand_back_for_good(args, taken, stats::Reason::policy);
    }
    const std::uint64_t generation = generation_now();
    CommonArguments common = read_common(args, comm);
    taken.count.block_bytes = common.block_bytes;
    if (!common.valid) [[unlikely]] {
        // The choice counts the call, as the other ranks do.
        const bool ours = common.doubtful && choose_for(comm, common, taken).algorithm != nullptr;
        if (ours && comm.wire == nullptr) exec::refuse_together(comm, args.collective);
        return hand_back(taken, stats::Reason::bad_arguments);
    }
    // On one node mates compare sizes; over several they would choose unlike, and wait for ever.
    if (common.names_two_sizes && comm.wire != nullptr) [[unlikely]]
        exec::stop_two_sizes(comm, args.collective);
    // Nothing to move, and all ranks know it. (In a bcast the root's length counts: it has to be told.)
    if (common.has_block && common.block_bytes == 0 && args.collective != Collective::bcast &&
        !is_neighbor(args.collective)) {
        taken.taken = true;
        if (common.refused_alias) taken.error = mpi::lib().constants.err_buffer;
        return;
    }
    const choose::Choice chosen = choose_for(comm, common, taken);
    if (chosen.algorithm == nullptr) {
        count_amounts(args, comm, common, taken);
        if (taken.begin_ns == 0 && !is_bounded(common, comm))
            remember_chosen(args, common, comm, chosen, nullptr, generation);
        begin_measuring(args.collective, chosen, taken);
        return hand_back(taken, chosen.by_force ? stats::Reason::disabled : stats::Reason::policy);
    }
    if (!choose::runs_on(*chosen.algorithm, args.collective, comm.wire != nullptr)) {
        count_amounts(args, comm, common, taken);
        begin_measuring(args.collective, chosen, taken);
        return hand_back(taken,
                         comm.wire != nullptr ? stats::Reason::several_nodes : stats::Reason::one_node);
    }
    run_chosen(args, comm, common, chosen, generation, taken);
}

// Counts what the MPI library does alone, to compare with: the report is asked for all the same.
void leave(const Args& args, const comm::Comm& comm, TakeResult& taken) {
    bool known = !is_neighbor(args.collective) || comm.neighbors != nullptr;
    if (!comm.settled && known) count_amounts(args, comm, read_common(args, comm), taken);
    hand_back(taken, stats::Reason::switched_off);
    taken.begin_ns = os::now_ns();
}

// While it lives: a call that all ranks are in together goes on to its end, or the job ends.
struct Undivided {
    explicit Undivided(Collective collective) { heap::t_undivided = base::name_of(collective).data(); }
    ~Undivided() { heap::t_undivided = nullptr; }
    Undivided(const Undivided&) = delete;
    Undivided& operator=(const Undivided&) = delete;
};

}  // namespace

namespace {

bool is_plain_exchange(Collective collective) {
    return !is_sized(collective) && !is_rooted(collective) && !is_neighbor(collective);
}

// The size of the block that each rank gets from each in a plain exchange; 0 for other collectives.
std::uint64_t plain_block_bytes(const Args& args) {
    if (!is_plain_exchange(args.collective)) return 0;
    const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(args.recv.count, 0));
    return count * dispatch::facts_of(args.recv.type).size_bytes;
}

// Whether all calls with these handles and counts weigh alike on a communicator that was not used enough yet.
// Where sizes count they may not, if the type may pass: the next type of this handle would weigh as this one,
// while a mate whose handles differ reads its size.
bool weigh_alike(const Args& args) {
    return !is_plain_exchange(args.collective) || dispatch::facts_of(args.recv.type).lasts;
}

// Counts a call on a communicator that is not settled. Returns: its state, or what stands in for it.
comm::Comm* count_call(const Args& args, comm::Comm& comm) {
    const std::uint64_t generation = generation_now();
    const std::uint64_t block_bytes = plain_block_bytes(args);
    comm::Comm* const counted = comm::count_call(comm, args.collective, block_bytes);
    if (counted->stands_in && weigh_alike(args))
        remember_unused(args, generation, comm::unused_calls(*counted, args.collective, block_bytes));
    return counted;
}

void run_known(const KnownCall& known, TakeResult& taken) {
    known.count();
    if (!known.chosen) return;
    comm::Comm& comm = *known.chosen->comm;
    const choose::Choice& choice = known.chosen->choice;
    begin_measuring(known.collective, choice, taken);
    if (known.passes_on) return;
    exec::Outcome outcome =
        exec::run(comm, comm.lane, known.chosen->call, *choice.algorithm, choice.parameters);
    taken.taken = outcome.reason == stats::Reason::none;
    if (outcome.closes) [[unlikely]]
        comm::close_for_devices(comm);
    const bool tells = outcome.size_class >= 0 || outcome.lacking || outcome.truncated;
    if (tells && !note_block_sizes(comm, *choice.cell, outcome)) taken.measured_for = nullptr;
    end_measuring(taken);
    taken.error = error_of(outcome);
}

}  // namespace

TakeResult take(const Args& args) noexcept {
    Undivided undivided(args.collective);
    TakeResult taken;
    expect_to_measure(args.collective, taken);
    heap::tend();
    if (const KnownCall* known = find_ready(args)) {
        run_known(*known, taken);
        return taken;
    }
    if (is_known_closed(args)) return taken;
    begin_call_of_types();
    bool off = is_switched_off();
    if (off && !stats::enabled()) return taken;
    if (const KnownCall* known = !stats::enabled() ? find_by_bytes(args) : nullptr) {
        run_known(*known, taken);
        return taken;
    }
    if (stats::enabled()) taken.begin_ns = os::now_ns();
    taken.count = {.collective = static_cast<std::uint8_t>(args.collective),
                   .block_bytes = stats::kUnknownBytes,
                   .reason = stats::Reason::none,
                   .algorithm = "mpi",
                   .comm_ranks = 0,
                   .bytes = 0,
                   .messages = 0,
                   .wire_bytes = 0,
                   .total_ns = 0,
                   .wait_ns = 0,
                   .staged = false};
    if (args.comm == mpi::lib().comm_null || !(off ? mpi_runs() : wake())) {
        hand_back(taken, stats::Reason::not_initialized);
        return taken;
    }
    comm::Comm* found = comm::of(args.comm);
    if (!off && !found->settled) [[unlikely]]
        found = count_call(args, *found);
    comm::Comm& comm = *found;
    taken.count.comm_ranks = comm.ranks;
    if (off) {
        leave(args, comm, taken);
        return taken;
    }
    if (comm.closed == stats::Reason::none)
        take_open(args, comm, taken);
    else if (comm.settled && comm.closed != stats::Reason::bad_arguments)  // else no communicator yet
        hand_back_for_good(args, taken, comm.closed);
    else
        hand_back(taken, comm.closed);
    return taken;
}

void rehearse(comm::Comm& world) {
    std::vector<std::byte> blocks(base::index(2 * world.ranks));
    const BufferArgs send{.buffer = blocks.data(), .count = 1, .type = mpi::lib().byte},
        recv{.buffer = blocks.data() + world.ranks, .count = 1, .type = mpi::lib().byte};
    for (const Collective collective : {Collective::alltoall, Collective::bcast})
        take({.collective = collective, .send = send, .recv = recv, .comm = world.handle});
    comm::forget_handles();
    world.choices.forget();
}

int raise_error(mpi::Comm comm, int error) {
    mpi::lib().Comm_call_errhandler(comm, error);
    return error;
}

void count_handed_back(TakeResult& taken) {
    const std::uint64_t end_ns = os::now_ns();
    if (taken.measured_for != nullptr) taken.measured_for->note(taken.measured_from_ns, end_ns);
    if (taken.begin_ns == 0) return;
    taken.count.total_ns = end_ns - taken.begin_ns;
    stats::record(taken.count);
}

}  // namespace coco::dispatch
