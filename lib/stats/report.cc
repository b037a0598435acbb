// SPDX-License-Identifier: BSD-3-Clause
//
// The ranks' rows put together. A collective call is made by every rank of its communicator, so `calls` is
// that of the rank that made most; bytes and messages are summed; times are those of the rank that spent
// most, so that waiting and copying add up; the median is over the calls of all ranks.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/check.h"
#include "base/collectives.h"
#include "base/env.h"
#include "base/one_line.h"
#include "stats/stats.h"

namespace coco::stats {
namespace {

const char* function_of(std::uint8_t collective) {
    return collective < base::kCollectives ? base::kCollectiveTable[collective].function : "MPI_?";
}

using Key = std::tuple<std::uint8_t, std::int32_t, int, std::string, Reason>;
struct Sum {
    std::set<std::int32_t> ranks;
    std::uint64_t calls = 0, bytes = 0, total_ns = 0, wait_ns = 0, staged = 0;
    // Messages and bytes on the wire: of all ranks together, and of the rank with most.
    std::uint64_t messages = 0, wire_bytes = 0, messages_most = 0, wire_bytes_most = 0;
    std::uint64_t time_class[kTimeClasses] = {};
};

void add(Sum& sum, const Row& row) {
    sum.ranks.insert(row.rank);
    sum.calls = std::max(sum.calls, row.calls);
    sum.staged = std::max(sum.staged, row.staged);
    sum.bytes += row.bytes;
    sum.messages += row.messages;
    sum.wire_bytes += row.wire_bytes;
    sum.messages_most = std::max(sum.messages_most, row.messages);
    sum.wire_bytes_most = std::max(sum.wire_bytes_most, row.wire_bytes);
    if (row.total_ns > sum.total_ns) {
        sum.total_ns = row.total_ns;
        sum.wait_ns = row.wait_ns;
    }
    for (int i = 0; i < kTimeClasses; ++i) sum.time_class[i] += row.time_class[i];
}

std::map<Key, Sum> sums_of(std::span<const Row> all) {
    std::map<Key, Sum> sums;
    for (const Row& row : all) {
        COCO_CHECK(row.reason < Reason::kReasons, "a row was counted for a reason that has a text");
        // What is unknown sorts and shows before 0.
        int block_class = row.block_class == kUnknownClass ? -1 : row.block_class;
        const std::string_view name(row.algorithm, strnlen(row.algorithm, sizeof row.algorithm));
        add(sums[{row.collective, row.comm_ranks, block_class, base::one_line(name), row.reason}], row);
    }
    return sums;
}

// Evenly spread within the class that holds the median.
std::uint64_t median_ns(const Sum& sum) {
    std::uint64_t calls = 0;
    for (std::uint64_t n : sum.time_class) calls += n;
    std::uint64_t before = 0;
    for (int i = 0; i < kTimeClasses; ++i) {
        std::uint64_t n = sum.time_class[i];
        if (2 * (before + n) > calls) {
            double share =
                (static_cast<double>(calls) / 2 - static_cast<double>(before)) / static_cast<double>(n);
            auto first = std::uint64_t{1} << i;
            return first + static_cast<std::uint64_t>(share * static_cast<double>(first));
        }
        before += n;
    }
    return 0;
}

// "0-3,6"
std::string ranges(const std::set<std::int32_t>& ranks) {
    std::string text;
    for (auto it = ranks.begin(); it != ranks.end();) {
        std::int32_t first = *it, last = first;
        while (++it != ranks.end() && *it == last + 1) ++last;
        if (!text.empty()) text += ',';
        text += std::to_string(first);
        if (last > first) text += '-' + std::to_string(last);
    }
    return text;
}

struct Hint {
    std::uint8_t collective;
    Reason reason;
    std::uint64_t times;
    std::string ranks, text;
};

std::string sentence(const Hint& hint, std::size_t ranks) {
    const ReasonText& why = text_of(hint.reason);
    std::string text = std::string(function_of(hint.collective)) + " handed back " +
                       std::to_string(hint.times) + (hint.times == 1 ? " time: " : " times: ") + why.what +
                       (ranks == 1 ? " at rank " : " at ranks ") + hint.ranks;
    if (*why.hint != '\0') text += std::string("; ") + why.hint;
    return text;
}

std::vector<Hint> hints_of(std::span<const Row> all) {
    std::map<std::pair<std::uint8_t, Reason>, std::map<std::int32_t, std::uint64_t>> times;
    for (const Row& row : all)
        if (row.reason != Reason::none) times[{row.collective, row.reason}][row.rank] += row.calls;
    std::vector<Hint> hints;
    for (const auto& [key, by_rank] : times) {
        Hint hint{key.first, key.second, 0, {}, {}};
        std::set<std::int32_t> ranks;
        for (auto [rank, n] : by_rank) {
            ranks.insert(rank);
            hint.times = std::max(hint.times, n);
        }
        hint.ranks = ranges(ranks);
        hint.text = sentence(hint, ranks.size());
        hints.push_back(std::move(hint));
    }
    return hints;
}

std::uint64_t first_of(int block_class) {
    COCO_CHECK(block_class >= 0 && block_class <= 64, "a class of blocks is a number of bits");
    return block_class == 0 ? 0 : std::uint64_t{1} << (block_class - 1);
}
std::uint64_t last_of(int block_class) { return block_class == 0 ? 0 : 2 * first_of(block_class) - 1; }

// "0", "1", "2-3", "64K-": the class ends below twice its first value.
std::string block_text(int block_class) {
    if (block_class < 0) return "unknown";
    std::uint64_t first = first_of(block_class);
    if (block_class < 2) return std::to_string(first);
    return block_class > 10 ? base::bytes_text(first) + "-<" + base::bytes_text(2 * first)
                            : std::to_string(first) + "-" + std::to_string(last_of(block_class));
}

std::string time_text(std::uint64_t ns) {
    constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
    auto value = static_cast<double>(ns);
    int unit = 0;
    for (; value >= 1000 && unit < 3; ++unit) value /= 1000;
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
    return text;
}

// The columns of what went over a wire, where there was one.
std::string wire_text(bool wired, const std::string& messages, const std::string& bytes) {
    char text[80];
    std::snprintf(text, sizeof text, " %9s %14s", messages.c_str(), bytes.c_str());
    return wired ? text : "";
}

std::string line_of(const Key& key, const Sum& sum, bool wired) {
    const auto& [collective, comm_ranks, block_class, algorithm, reason] = key;
    bool ours = reason == Reason::none;
    bool sent = ours || sum.messages != 0;  // messages that MPI sends itself are not counted
    char line[400];
    std::snprintf(line, sizeof line, "%-15s %6d %11s  %-14s %9llu %14llu%s %10s %10s %10s %10s %8llu  %s\n",
                  function_of(collective), comm_ranks, block_text(block_class).c_str(), algorithm.c_str(),
                  static_cast<unsigned long long>(sum.calls), static_cast<unsigned long long>(sum.bytes),
                  wire_text(wired, sent ? std::to_string(sum.messages) : "-",
                            sent ? std::to_string(sum.wire_bytes) : "-")
                      .c_str(),
                  time_text(median_ns(sum)).c_str(), time_text(sum.total_ns).c_str(),
                  ours ? time_text(sum.wait_ns).c_str() : "-",
                  ours ? time_text(sum.total_ns - std::min(sum.wait_ns, sum.total_ns)).c_str() : "-",
                  static_cast<unsigned long long>(sum.staged), ours ? "" : text_of(reason).name);
    std::string text = line;
    text.erase(text.find_last_not_of(" \n") + 1);
    return text + '\n';
}

bool is_of_any_size(const Learned& one) { return one.block_last == UINT64_MAX; }

// "MPI_Alltoall on 1 x 4 ranks, blocks to 64: learned eager (1.20 us) against mpi (2.30 us), naive (not
// tried), in 2 looks that took 12.00 us"
std::string sentence(const Learned& one) {
    COCO_CHECK(one.incumbent < one.candidates.size(), "the incumbent is one of the candidates");
    auto timed = [](const Learned::Candidate& candidate) {
        return base::one_line(candidate.name) + " (" +
               (candidate.time_ns == 0 ? "not tried"
                                       : time_text(static_cast<std::uint64_t>(candidate.time_ns))) +
               ")";
    };
    const bool is_known = one.candidates[one.incumbent].time_ns != 0;
    std::string text =
        std::string(function_of(one.collective)) + " on " + std::to_string(one.nodes) + " x " +
        std::to_string(one.ranks_per_node) + " ranks, " +
        (is_of_any_size(one) ? "all blocks" : "blocks to " + base::bytes_text(one.block_last)) +
        (is_known ? ": learned " : ": nothing was learned of ") + timed(one.candidates[one.incumbent]) +
        (is_known ? " against" : " and");
    bool is_first = true;
    for (std::size_t c = 0; c < one.candidates.size(); ++c) {
        if (c == one.incumbent) continue;
        text += (is_first ? " " : ", ") + timed(one.candidates[c]);
        is_first = false;
    }
    return text + ", in " + std::to_string(one.looks) + (one.looks == 1 ? " look" : " looks") +
           " that took " + time_text(static_cast<std::uint64_t>(std::max<std::int64_t>(one.spent_ns, 0)));
}

}  // namespace

std::string table(std::span<const Row> all, std::int32_t world_ranks, Counted counted,
                  std::span<const Learned> learned) {
    std::string text = "coco: collective calls of " +
                       std::string(counted == Counted::rank_0 ? "rank 0 of " : "") +
                       std::to_string(world_ranks) + (world_ranks == 1 ? " rank\n" : " ranks\n");
    if (all.empty()) return text + "none\n";
    bool wired = std::ranges::any_of(all, [](const Row& row) { return row.messages != 0; });
    char head[240];
    std::snprintf(head, sizeof head, "%-15s %6s %11s  %-14s %9s %14s%s %10s %10s %10s %10s %8s  %s\n",
                  "collective", "ranks", "block", "algorithm", "calls", "bytes",
                  wire_text(wired, "messages", "on the wire").c_str(), "median", "total", "waiting",
                  "copying", "staged", "handed back");
    text += head;
    for (const auto& [key, sum] : sums_of(all)) text += line_of(key, sum, wired);
    for (const Hint& hint : hints_of(all)) text += hint.text + '\n';
    for (const Learned& one : learned) text += sentence(one) + '\n';
    return text;
}

namespace {

using nlohmann::ordered_json;

ordered_json json_of(const Key& key, const Sum& sum) {
    const auto& [collective, comm_ranks, block_class, algorithm, reason] = key;
    ordered_json row = {{"function", function_of(collective)}, {"comm_ranks", comm_ranks}};
    row["block_first"] = block_class < 0 ? ordered_json(nullptr) : ordered_json(first_of(block_class));
    row["block_last"] = block_class < 0 ? ordered_json(nullptr) : ordered_json(last_of(block_class));
    row["algorithm"] = algorithm;
    bool ours = reason == Reason::none;
    row["handed_back"] = ours ? ordered_json(nullptr) : ordered_json(text_of(reason).name);
    row["world_ranks"] = ranges(sum.ranks);
    row["calls"] = sum.calls;
    row["bytes"] = sum.bytes;
    row["messages"] = sum.messages;
    row["messages_most"] = sum.messages_most;
    row["wire_bytes"] = sum.wire_bytes;
    row["wire_bytes_most"] = sum.wire_bytes_most;
    row["median_ns"] = median_ns(sum);
    row["total_ns"] = sum.total_ns;
    row["wait_ns"] = ours ? ordered_json(sum.wait_ns) : ordered_json(nullptr);
    row["staged"] = sum.staged;
    return row;
}

ordered_json json_of(const Hint& hint) {
    const ReasonText& why = text_of(hint.reason);
    return {{"function", function_of(hint.collective)},
            {"reason", why.name},
            {"times", hint.times},
            {"world_ranks", hint.ranks},
            {"why", why.what},
            {"help", *why.hint == '\0' ? ordered_json() : ordered_json(why.hint)},
            {"text", hint.text}};
}

ordered_json json_of(const Learned::Candidate& candidate) {
    auto known = [&](std::int64_t ns) { return candidate.time_ns == 0 ? ordered_json() : ordered_json(ns); };
    return {{"name", candidate.name},
            {"time_ns", known(candidate.time_ns)},
            {"low_ns", known(candidate.low_ns)},
            {"high_ns", known(candidate.high_ns)}};
}

ordered_json json_of(const Learned& one) {
    const bool is_any = is_of_any_size(one);
    COCO_CHECK(one.incumbent < one.candidates.size(), "the incumbent is one of the candidates");
    ordered_json row = {{"function", function_of(one.collective)},
                        {"nodes", one.nodes},
                        {"ranks_per_node", one.ranks_per_node}};
    row["block_first"] = is_any ? ordered_json(nullptr) : ordered_json(one.block_first);
    row["block_last"] = is_any ? ordered_json(nullptr) : ordered_json(one.block_last);
    row["incumbent"] = one.candidates[one.incumbent].name;
    row["candidates"] = ordered_json::array();
    for (const Learned::Candidate& candidate : one.candidates)
        row["candidates"].push_back(json_of(candidate));
    row["calls"] = one.calls;
    row["looks"] = one.looks;
    row["changes"] = one.changes;
    row["spent_ns"] = one.spent_ns;
    return row;
}

}  // namespace

std::string json(std::span<const Row> all, std::int32_t world_ranks, std::span<const Learned> learned) {
    ordered_json root = {{"format", 1}, {"world_ranks", world_ranks}};
    root["calls"] = ordered_json::array();
    for (const auto& [key, sum] : sums_of(all)) root["calls"].push_back(json_of(key, sum));
    root["handed_back"] = ordered_json::array();
    for (const Hint& hint : hints_of(all)) root["handed_back"].push_back(json_of(hint));
    if (!learned.empty()) root["learned"] = ordered_json::array();
    for (const Learned& one : learned) root["learned"].push_back(json_of(one));
    return root.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace coco::stats
