// SPDX-License-Identifier: BSD-3-Clause
// Fuzz target: rows of the report with any names and numbers in them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "fuzz.h"
#include "stats/stats.h"

namespace {

using namespace coco;

stats::Row row_of(fuzz::Input& input) {
    stats::Row row{};
    row.collective = input.number<std::uint8_t>();
    const std::uint32_t block_class = input.number_up_to(65);  // as of a number of 64 bits; the last: unknown
    row.block_class = block_class == 65 ? 255 : static_cast<std::uint8_t>(block_class);
    row.reason = static_cast<stats::Reason>(
        input.number_up_to(static_cast<std::uint32_t>(stats::Reason::kReasons) - 1));
    const std::string_view name = input.text_before('\n');
    name.copy(row.algorithm, sizeof row.algorithm);
    row.comm_ranks = input.number<std::int32_t>();
    row.rank = input.number<std::int32_t>();
    for (std::uint64_t* figure :
         {&row.calls, &row.bytes, &row.messages, &row.wire_bytes, &row.total_ns, &row.wait_ns, &row.staged})
        *figure = input.number<std::uint64_t>() >> 8;  // the sums of all ranks fit
    row.time_class[input.number_up_to(stats::kTimeClasses - 1)] = input.number<std::uint32_t>();
    row.time_class[input.number_up_to(stats::kTimeClasses - 1)] = input.number<std::uint32_t>();
    return row;
}

stats::Learned learned_of(fuzz::Input& input) {
    stats::Learned learned{};
    learned.collective = input.number<std::uint8_t>();
    learned.nodes = input.number<std::int32_t>();
    learned.ranks_per_node = input.number<std::int32_t>();
    learned.block_first = input.number<std::uint64_t>();
    learned.block_last = input.number<std::uint64_t>();
    const std::uint32_t candidates = 1 + input.number_up_to(4);
    for (std::uint32_t c = 0; c < candidates; ++c)
        learned.candidates.push_back({std::string(input.text_before('\n')), input.number<std::int64_t>()});
    learned.incumbent = input.number_up_to(candidates - 1);
    for (std::uint64_t* figure : {&learned.calls, &learned.looks, &learned.changes})
        *figure = input.number<std::uint64_t>();
    learned.spent_ns = input.number<std::int64_t>();
    return learned;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const auto world_ranks = input.number<std::int32_t>();
    std::vector<stats::Row> rows(input.number_up_to(5));
    for (stats::Row& row : rows) row = row_of(input);
    std::vector<stats::Learned> learned(input.number_up_to(3));
    for (stats::Learned& one : learned) one = learned_of(input);

    const std::string text = stats::json(rows, world_ranks, learned);
    const auto read = nlohmann::json::parse(text, nullptr, false);
    REQUIRE_TRUE(!read.is_discarded(), text);
    REQUIRE_TRUE(read["format"] == 1 && read["world_ranks"] == world_ranks, text);
    REQUIRE_TRUE(read["calls"].size() <= rows.size() && read["calls"].empty() == rows.empty(), text);
    REQUIRE_TRUE(learned.empty() ? !read.contains("learned") : read["learned"].size() == learned.size(),
                 text);

    const std::string table = stats::table(rows, world_ranks, stats::Counted::all_ranks, learned);
    const std::size_t most = rows.empty() ? 2 : 2 + 2 * rows.size() + learned.size();
    REQUIRE_TRUE(table.ends_with('\n') && static_cast<std::size_t>(std::ranges::count(table, '\n')) <= most,
                 table);
    return 0;
}
