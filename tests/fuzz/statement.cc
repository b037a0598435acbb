// SPDX-License-Identifier: BSD-3-Clause
// Fuzz target: what other processes of `coco doctor` say over sockets, a statement a line, and the report
// that is made of it.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "fuzz.h"
#include "tools/doctor_report.h"
#include "tools/doctor_statement.h"

namespace {

using namespace coco;

// What is read is read back from its own text.
void check_text(const std::string& text) {
    if (const auto tried = tools::read_tried(text)) {
        const std::string own = tools::text_of(*tried);
        const auto again = tools::read_tried(own);
        REQUIRE_TRUE(again && tools::text_of(*again) == own, own);
    }
    const std::string offers = tools::text_of(tools::read_offers(text));
    REQUIRE_TRUE(tools::text_of(tools::read_offers(offers)) == offers, offers);
}

std::vector<tools::Statement> statements_of(fuzz::Input input) {
    std::vector<tools::Statement> all;
    while (!input.is_empty()) {
        const std::string text(input.text_before('\n'));
        check_text(text);
        const auto statement = tools::read_statement(text);
        if (!statement) continue;
        const std::string own = tools::text_of(*statement);
        const auto again = tools::read_statement(own);
        REQUIRE_TRUE(again && tools::text_of(*again) == own, own);
        all.push_back(*statement);
    }
    return all;
}

void check_report(const tools::Report& report) {
    const std::string lines = tools::for_people(report);
    REQUIRE_TRUE(lines.ends_with('\n'), lines);
    const auto count = static_cast<std::size_t>(std::ranges::count(lines, '\n'));
    REQUIRE_TRUE(count <= 2 + 2 * report.entries.size(), lines);
    const std::string json = tools::as_json(report);
    REQUIRE_TRUE(nlohmann::json::accept(json), json);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const auto expected = input.number<std::uint8_t>();
    const std::vector<tools::Statement> statements = statements_of(input);
    if (statements.empty()) return 0;
    tools::Report report;
    report.expected_ranks = expected;
    for (const tools::Statement& statement : statements) {
        report.ranks.push_back({statement.rank, statement.host});
        tools::add(report, statement.findings, statement.rank);
    }
    tools::Findings common;
    tools::compare(statements, expected, common);
    tools::add_common(report, common.all());
    check_report(report);
    return 0;
}
