// SPDX-License-Identifier: BSD-3-Clause
//
// A call on a machine of very many ranks, of which one node stands for all: its ranks walk the library's own
// schedules, and what they send to the node d places on is, at the same time, what comes to them from the
// node d places before. Exact for schedules that look the same from each node; others end with a line.
// Modelled as in world.h and machine.py: copies, elements, flags, the CPU's work for a message, latency and
// bandwidth of a link. Besides: messages that a host's network card starts at most, and the cost of passing
// an entry of the queue of posted receives, which MPI libraries search from its front.
//
//   build/bench/large HOSTS RANKS_PER_HOST COLLECTIVE ALGORITHM BYTES...    alltoall, alltoallv or allgather
//   ALGORITHM "linear" posts all receives, then all sends, beginning behind the own rank, as MPI libraries do.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <numeric>
#include <queue>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/collectives.h"
#include "messages/opening.h"
#include "policy/policy.h"
#include "topology/node_map.h"

namespace {

using namespace coco;
using schedule::Act;
using schedule::Step;

struct Costs {
    double copy_s = 5e-9, byte_s = 1 / 10e9, element_s = 3e-9, flag_s = 150e-9, raise_s = 20e-9;
    double send_s = 300e-9, receive_s = 200e-9, message_byte_s = 0.02e-9;
    double latency_s = 500e-9, link_byte_s = 1 / (12.5e9 * 0.95), card_s = 200e-9, queue_s = 5e-9;
    double local_latency_s = 300e-9, local_byte_s = 1 / 10e9;
    double most_detached_bytes = 65536;
};

struct Message {
    int blocks = 0;
    double bytes = 0, sent = -1, posted = -1, arrived = -1;
    double queue = 0;  // receives before it in the queue when it was posted
    bool is_local = false;
    int waiter = -1;
};
using MessageId = std::size_t;

struct Rank {
    schedule::Schedule steps;
    std::size_t at = 0;
    std::int32_t part = 0;
    double now = 0;
    std::deque<std::pair<MessageId, bool>> open;  // bool: received
    int posted = 0;
    std::vector<std::pair<schedule::Milestone, double>> raised;
    std::vector<int> waiters;
};

[[noreturn]] void stop(const char* what) {
    std::fprintf(stderr, "large: %s\n", what);
    std::exit(2);
}

class Machine {
  public:
    Machine(int hosts, int per_host, bool sized, double block_bytes)
        : hosts_(hosts),
          per_host_(per_host),
          sized_(sized),
          block_bytes_(block_bytes),
          ranks_(static_cast<std::size_t>(per_host)) {}

    Rank& rank(int i) { return ranks_[static_cast<std::size_t>(i)]; }

    // Returns: seconds until the slowest rank is through.
    double run() {
        for (int i = 0; i < per_host_; ++i) ready_.push({0, i});
        while (!ready_.empty()) {
            const auto [time, i] = ready_.top();
            ready_.pop();
            advance(i);
        }
        double last = 0;
        for (Rank& one : ranks_) {
            if (one.at != one.steps.steps.size())
                stop("some rank waits for ever: the schedule is not alike for all nodes");
            last = std::max(last, one.now);
        }
        return last;
    }
    std::size_t messages() const { return messages_.size(); }

  private:
    using Turn = std::pair<double, int>;

    int node_of(int rank) const { return rank / per_host_; }
    // A message of a v form whose data do not go along with the lengths has a second part.
    bool is_two(const Message& one) const {
        return sized_ && one.bytes > static_cast<double>(messages::kAlongBytes) +
                                         static_cast<double>(format().head_bytes(one.blocks));
    }
    double wire_bytes(int blocks) const {
        if (!sized_) return blocks * block_bytes_;
        return static_cast<double>(format().head_bytes(blocks)) + blocks * block_bytes_;
    }
    messages::Format format() const { return messages::opened_format(true, hosts_ * per_host_); }

    // Of messages that are alike on all nodes: from the index on a node, over a distance, to an index.
    MessageId message(int from, int distance, int to, bool sends) {
        const auto key = (static_cast<std::uint64_t>(from) * static_cast<unsigned>(hosts_) +
                          static_cast<unsigned>(distance)) *
                             static_cast<unsigned>(per_host_) +
                         static_cast<unsigned>(to);
        auto& [sent, received] = counts_[key];
        const int number = sends ? sent++ : received++;
        auto& all = by_key_[key];
        if (static_cast<std::size_t>(number) == all.size()) {
            all.push_back(messages_.size());
            messages_.push_back({.is_local = distance == 0});
        }
        return all[static_cast<std::size_t>(number)];
    }

    // Steps of the rank until it waits, or until another rank is behind it in time.
    void advance(int i) {
        Rank& me = rank(i);
        while (me.at < me.steps.steps.size()) {
            if (!take(i, me.steps.steps[me.at])) return;
            ++me.at;
            me.part = 0;
            if (!ready_.empty() && me.now > ready_.top().first) return ready_.push({me.now, i});
        }
    }

    bool has_come(int i, int peer, schedule::Milestone milestone) {
        Rank& other = rank(peer % per_host_);
        for (auto [raised, time] : other.raised)
            if (raised >= milestone) {
                rank(i).now = std::max(rank(i).now, time + costs_.flag_s);
                return true;
            }
        other.waiters.push_back(i);
        return false;
    }

    bool take(int i, const Step& step) {
        Rank& me = rank(i);
        switch (step.act) {
            case Act::copy:
                return copy(i, step);
            case Act::wait:
                for (; me.part < step.count; ++me.part)
                    if (!has_come(i, step.awaited(me.part), step.milestone)) return false;
                return true;
            case Act::raise:
                me.now += costs_.raise_s;
                me.raised.push_back({step.milestone, me.now});
                for (const int waiter : std::exchange(me.waiters, {}))
                    ready_.push({rank(waiter).now, waiter});
                return true;
            case Act::send:
                return send(i, step), true;
            case Act::receive:
                return receive(i, step), true;
            case Act::complete:
                return complete(i, static_cast<std::size_t>(step.count));
        }
        return true;
    }

    bool copy(int i, const Step& step) {
        Rank& me = rank(i);
        if (step.after_target && me.part == 0 && !has_come(i, step.target_owner, schedule::kArrived))
            return false;
        for (; me.part < step.count; ++me.part) {
            if (step.after_source && !has_come(i, step.source(me.part).owner, schedule::kArrived))
                return false;
            me.now += sized_ ? costs_.element_s : block_bytes_ * costs_.byte_s;
            const bool moves =
                sized_ ? step.target_area == schedule::Area::recv : me.part == 0 || step.along_owners;
            if (moves) me.now += costs_.copy_s + (sized_ ? block_bytes_ * costs_.byte_s : 0);
        }
        return true;
    }

    void send(int i, const Step& step) {
        Rank& me = rank(i);
        if (sized_) me.now += step.count * (costs_.element_s + costs_.copy_s + block_bytes_ * costs_.byte_s);
        const int to = step.peer();
        const MessageId id = message(i, node_of(to), to % per_host_, true);
        Message& one = messages_[id];
        const double bytes = wire_bytes(step.count);
        if (one.posted >= 0 && one.bytes != bytes) stop("messages differ from node to node");
        one.bytes = bytes;
        one.blocks = step.count;
        me.now += (is_two(one) ? 2 : 1) * costs_.send_s + bytes * costs_.message_byte_s;
        one.sent = me.now;
        me.open.push_back({id, false});
        start(one);
    }
    void receive(int i, const Step& step) {
        Rank& me = rank(i);
        const int from = step.peer(), distance = (hosts_ - node_of(from)) % hosts_;
        const MessageId id = message(from % per_host_, distance, i, false);
        Message& one = messages_[id];
        const double bytes = wire_bytes(step.count);
        if (one.sent >= 0 && one.bytes != bytes) stop("messages differ from node to node");
        one.bytes = bytes;
        one.posted = me.now;
        one.queue = me.posted++;
        me.open.push_back({id, true});
        start(one);
    }
    // The transfer begins when both sides are there, or when the sender is, if it need not wait.
    void start(Message& one) {
        if (one.sent < 0 || one.arrived >= 0) return;
        if (one.bytes >= costs_.most_detached_bytes && one.posted < 0) return;
        const double begin = std::max(one.sent, one.bytes >= costs_.most_detached_bytes ? one.posted : 0);
        if (one.is_local) {
            one.arrived = begin + costs_.local_latency_s + one.bytes * costs_.local_byte_s;
        } else {
            const double leaves = std::max(begin, card_free_);
            card_free_ = leaves + std::max(costs_.card_s, one.bytes * costs_.link_byte_s);
            one.arrived = card_free_ + costs_.latency_s;
            if (is_two(one)) {  // it follows when the lengths are known
                card_free_ += costs_.card_s;
                one.arrived += costs_.card_s + costs_.receive_s;
            }
        }
        if (one.waiter >= 0) ready_.push({rank(one.waiter).now, one.waiter});
    }

    bool complete(int i, std::size_t left) {
        Rank& me = rank(i);
        while (me.open.size() > left) {
            const auto [id, received] = me.open.front();
            Message& one = messages_[id];
            const bool waits = received || one.bytes >= costs_.most_detached_bytes;
            if (waits && one.arrived < 0) {
                one.waiter = i;
                return false;
            }
            if (waits) me.now = std::max(me.now, one.arrived);
            if (received) {
                // Half of those that were posted before it are through when it comes.
                me.now +=
                    costs_.receive_s + one.bytes * costs_.message_byte_s + one.queue / 2 * costs_.queue_s;
                --me.posted;
            }
            me.open.pop_front();
        }
        return true;
    }

    const int hosts_, per_host_;
    const bool sized_;
    const double block_bytes_;
    const Costs costs_;
    std::vector<Rank> ranks_;
    std::vector<Message> messages_;
    std::map<std::uint64_t, std::pair<int, int>> counts_;
    std::map<std::uint64_t, std::vector<MessageId>> by_key_;
    std::priority_queue<Turn, std::vector<Turn>, std::greater<>> ready_;
    double card_free_ = 0;
};

schedule::Schedule linear(int hosts, int per_host, int rank) {
    const int ranks = hosts * per_host;
    schedule::Builder steps;
    for (int i = 1; i < ranks; ++i)
        steps.receive((rank + ranks - i) % ranks, {rank, schedule::Area::recv, (rank + ranks - i) % ranks},
                      1);
    for (int i = 1; i < ranks; ++i)
        steps.send((rank + i) % ranks, {rank, schedule::Area::send, (rank + i) % ranks}, 1);
    return steps.complete().raise(schedule::kDone).take();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 6) stop("usage: large HOSTS RANKS_PER_HOST COLLECTIVE ALGORITHM BYTES...");
    const int hosts = std::atoi(argv[1]), per_host = std::atoi(argv[2]);
    if (hosts < 1 || per_host < 1 || hosts * per_host < 2) stop("a machine has two ranks or more");
    const auto collective = base::collective_of(argv[3]);
    if (collective != base::Collective::alltoall && collective != base::Collective::alltoallv &&
        collective != base::Collective::allgather)
        stop("the collective must be alltoall, alltoallv or allgather");
    policy::Choice choice;
    const bool is_linear = std::string(argv[4]) == "linear";
    if (!is_linear) {
        if (auto error = policy::parse_choice(argv[4], *collective, choice)) stop(error->line.c_str());
        if (choice.algorithm == nullptr || choice.algorithm->one_node())
            stop("the algorithm must be one of several nodes");
    }
    std::vector<std::int32_t> node(static_cast<std::size_t>(hosts * per_host));
    for (std::size_t r = 0; r < node.size(); ++r) node[r] = static_cast<std::int32_t>(r) / per_host;
    const topology::NodeMap map(node, node);
    const bool sized = base::is_sized(*collective) && !is_linear;
    for (int a = 5; a < argc; ++a) {
        const double bytes = std::atof(argv[a]);
        if (!(bytes > 0)) stop("a block has bytes");
        if (sized && bytes > static_cast<double>(messages::kAlongBytes))
            stop("blocks of v forms have up to 4 KiB here");
        Machine machine(hosts, per_host, sized, bytes);
        for (int i = 0; i < per_host; ++i)
            machine.rank(i).steps =
                is_linear ? linear(hosts, per_host, i)
                          : choice.algorithm->make_schedule({.exchange = base::exchange_of(*collective),
                                                             .rank = i,
                                                             .map = &map,
                                                             .parameters = choice.parameters});
        std::size_t steps = 0, scratch = 0;
        for (int i = 0; i < per_host; ++i) {
            steps = std::max(steps, machine.rank(i).steps.steps.size());
            scratch = std::max(scratch, static_cast<std::size_t>(machine.rank(i).steps.scratch_blocks));
        }
        const double seconds = machine.run();
        std::printf(
            "%-10s %4d x %-3d %-28s %8.0f B %14.1f us %10zu messages of a node %9zu steps %9zu scratch "
            "blocks\n",
            argv[3], hosts, per_host, argv[4], bytes, seconds * 1e6, machine.messages(), steps, scratch);
        std::fflush(stdout);
    }
}
