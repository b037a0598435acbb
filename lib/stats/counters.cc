// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <mutex>

#include "base/bits.h"
#include "base/check.h"
#include "base/collectives.h"
#include "base/env.h"
#include "base/log.h"
#include "base/write_signals.h"
#include "stats/stats.h"

namespace coco::stats {
namespace {

constinit std::mutex g_lock;
// Leaked: calls may be counted while static objects are being destroyed.
std::vector<Row>* g_rows = nullptr;
constinit bool g_enabled = false;  // written in MPI_Init, which comes before any other call in every thread

std::uint8_t class_of(std::uint64_t block_bytes) {
    if (block_bytes == kUnknownBytes) return kUnknownClass;
    return static_cast<std::uint8_t>(std::bit_width(block_bytes));
}

bool same_key(const Row& row, const Call& call, std::string_view algorithm) {
    return row.collective == call.collective && row.block_class == class_of(call.block_bytes) &&
           row.reason == call.reason && row.comm_ranks == call.comm_ranks && row.algorithm == algorithm;
}

// The row of the call's key, made if there is none. Requires: the lock is held.
Row& row_of(const Call& call) {
    COCO_CHECK_DEAR(call.algorithm != nullptr && call.collective < base::kCollectives,
                    "a call that is counted is one of a collective by an algorithm");
    COCO_CHECK_DEAR(call.reason < Reason::kReasons && call.comm_ranks >= 0,
                    "a call that is counted was run, or handed back for a reason");
    std::string_view algorithm = std::string_view(call.algorithm).substr(0, sizeof Row::algorithm - 1);
    if (g_rows == nullptr) g_rows = new std::vector<Row>;
    for (Row& row : *g_rows)
        if (same_key(row, call, algorithm)) return row;
    Row& row = g_rows->emplace_back();
    row.collective = call.collective;
    row.block_class = class_of(call.block_bytes);
    row.reason = call.reason;
    algorithm.copy(row.algorithm, algorithm.size());
    row.comm_ranks = call.comm_ranks;
    return row;
}

}  // namespace

bool configure() {
    std::string_view value = base::env("COCO_STATS");
    bool file = value.size() > 5 && value.ends_with(".json");
    g_enabled = file || value == "1";
    return g_enabled || value.empty() || value == "0";
}

bool enabled() { return g_enabled; }

void record(const Call& call) {
    std::lock_guard guard(g_lock);
    Row& row = row_of(call);
    row.calls += 1;
    row.bytes += call.bytes;
    row.messages += call.messages;
    row.wire_bytes += call.wire_bytes;
    row.total_ns += call.total_ns;
    row.wait_ns += call.wait_ns;
    row.staged += call.staged ? 1 : 0;
    row.time_class[std::min(base::log2_floor(call.total_ns), kTimeClasses - 1)] += 1;
}

std::vector<Row> rows(std::int32_t world_rank) {
    COCO_CHECK(world_rank >= 0, "rows are counted by a rank");
    std::lock_guard guard(g_lock);
    std::vector<Row> copy = g_rows != nullptr ? *g_rows : std::vector<Row>();
    for (Row& row : copy) row.rank = world_rank;
    return copy;
}

namespace {

bool write_file(std::string_view name, const std::string& text) {
    const base::HeldWriteSignals held;
    std::ofstream out{std::string(name)};
    out << text << std::flush;
    if (!out)
        COCO_LOG(error, "COCO_STATS=" << name << ": cannot be written: " << std::strerror(errno)
                                      << "; here is the table instead");
    return static_cast<bool>(out);
}

}  // namespace

bool report(std::span<const Row> all, std::int32_t world_ranks, Counted counted,
            std::span<const Learned> learned) {
    std::string_view value = base::env("COCO_STATS");
    bool wants_file = value.ends_with(".json");
    if (wants_file && write_file(value, json(all, world_ranks, learned))) return true;
    std::string text = table(all, world_ranks, counted, learned);
    for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
        end = std::min(text.find('\n', at), text.size());
        base::write_line(base::Text(std::string_view(text).substr(at, end - at)));
    }
    return !wants_file;
}

}  // namespace coco::stats
