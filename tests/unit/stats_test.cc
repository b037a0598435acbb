// SPDX-License-Identifier: BSD-3-Clause
#include "stats/stats.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "algorithms/algorithm.h"

using namespace coco;
using namespace coco::stats;

namespace {

Row row(int rank, int collective, int block_class, Reason reason, const char* algorithm,
        std::uint64_t calls) {
    Row r{};
    r.collective = static_cast<std::uint8_t>(collective);
    r.block_class = static_cast<std::uint8_t>(block_class);
    r.reason = reason;
    std::strcpy(r.algorithm, algorithm);
    r.comm_ranks = 4;
    r.rank = rank;
    r.calls = calls;
    r.bytes = calls * 1000;
    r.total_ns = calls * 3000 + static_cast<std::uint64_t>(rank);
    r.wait_ns = calls * 1000;
    r.time_class[11] = calls;  // 2048 to 4095 ns
    return r;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("every reason has a name of its own", "[stats]") {
    std::set<std::string> names;
    for (int i = 0; i < static_cast<int>(Reason::kReasons); ++i) {
        const ReasonText& text = text_of(static_cast<Reason>(i));
        CHECK(names.insert(text.name).second);
        CHECK(std::strlen(text.what) > 0);
    }
    CHECK(std::string(text_of(Reason::send_private).name) == "send_private");
    CHECK(std::string(text_of(Reason::not_initialized).name) == "not_initialized");
}

TEST_CASE("a hint tells times, reason, ranks and cure", "[stats]") {
    std::vector<Row> rows;
    for (int rank : {0, 1, 2, 3, 6}) rows.push_back(row(rank, 0, 10, Reason::send_private, "mpi", 120));
    rows.push_back(row(5, 5, 4, Reason::bad_arguments, "mpi", 1));
    std::string text = table(rows, 8);
    CHECK(holds(
        text,
        "\nMPI_Alltoall handed back 120 times: send buffer outside the shared heap (stack, static or mmap) "
        "at ranks 0-3,6; allocate it with malloc\n"));
    CHECK(holds(text, "\nMPI_Bcast handed back 1 time: arguments that MPI refuses at rank 5\n"));
    auto hint = nlohmann::json::parse(json(rows, 8))["handed_back"][0];
    CHECK(hint["why"] == "send buffer outside the shared heap (stack, static or mmap)");
    CHECK(hint["help"] == "allocate it with malloc");
}

TEST_CASE("calls of all block classes count in one hint", "[stats]") {
    std::vector<Row> rows = {row(0, 0, 10, Reason::policy, "mpi", 7),
                             row(0, 0, 11, Reason::policy, "mpi", 5)};
    CHECK(
        holds(table(rows, 1), "MPI_Alltoall handed back 12 times: the policy leaves it to MPI at rank 0\n"));
}

TEST_CASE("the table has one line for each key", "[stats]") {
    std::vector<Row> rows = {row(0, 0, 10, Reason::none, "eager", 10),
                             row(1, 0, 10, Reason::none, "eager", 10),
                             row(0, 3, 0, Reason::none, "naive", 2)};
    std::string text = table(rows, 2);
    CHECK(std::count(text.begin(), text.end(), '\n') == 4);
    CHECK(holds(
        text,
        "512-1023  eager                 10          20000    3.07 us   30.00 us   10.00 us   20.00 us"));
    CHECK(holds(text, "MPI_Allgather"));
    CHECK(table({}, 2) == "coco: collective calls of 2 ranks\nnone\n");
}

TEST_CASE("messages have columns where there were any", "[stats]") {
    std::vector<Row> rows = {row(0, 0, 10, Reason::none, "leader", 10),
                             row(1, 0, 10, Reason::none, "leader", 10)};
    CHECK_FALSE(holds(table(rows, 2), "messages"));
    rows[0].messages = 40;
    rows[0].wire_bytes = 4096;
    rows[1].messages = 10;
    rows[1].wire_bytes = 5000;
    std::string text = table(rows, 2);
    CHECK(holds(text, "        bytes  messages    on the wire     median"));
    CHECK(holds(text, "        20000        50           9096    3.07 us"));
    rows.push_back(row(0, 0, 10, Reason::policy, "mpi", 10));
    CHECK(holds(table(rows, 2), "        10000         -              -    3.07 us"));
    auto call = nlohmann::json::parse(json(rows, 2))["calls"][0];
    CHECK(call["messages"] == 50);
    CHECK(call["messages_most"] == 40);
    CHECK(call["wire_bytes"] == 9096);
    CHECK(call["wire_bytes_most"] == 5000);
}

TEST_CASE("collectives are named as algorithms number them", "[stats]") {
    for (int c = 0; c < algorithms::kCollectives; ++c) {
        Row only[] = {row(0, c, 3, Reason::none, "eager", 1)};
        std::string name(base::name_of(static_cast<algorithms::Collective>(c)));
        name[0] = static_cast<char>(std::toupper(name[0]));
        CHECK(holds(table(only, 1), "\nMPI_" + name + " "));
    }
}

TEST_CASE("JSON holds what the table shows", "[stats]") {
    std::vector<Row> rows = {row(0, 0, 10, Reason::none, "eager", 10),
                             row(1, 0, 10, Reason::none, "eager", 9), row(1, 5, 255, Reason::peer, "mpi", 1)};
    auto root = nlohmann::json::parse(json(rows, 2));
    CHECK(root["format"] == 1);
    CHECK(root["world_ranks"] == 2);
    REQUIRE(root["calls"].size() == 2);
    auto& ours = root["calls"][0];
    CHECK(ours["function"] == "MPI_Alltoall");
    CHECK(ours["comm_ranks"] == 4);
    CHECK(ours["block_first"] == 512);
    CHECK(ours["block_last"] == 1023);
    CHECK(ours["algorithm"] == "eager");
    CHECK(ours["handed_back"].is_null());
    CHECK(ours["world_ranks"] == "0-1");
    CHECK(ours["calls"] == 10);
    CHECK(ours["bytes"] == 19000);
    CHECK(ours["messages"] == 0);
    CHECK(ours["wire_bytes"] == 0);
    CHECK(ours["median_ns"] == 2048 + 1024);
    CHECK(ours["total_ns"] == 30000);
    CHECK(ours["wait_ns"] == 10000);
    auto& theirs = root["calls"][1];
    CHECK(theirs["block_first"].is_null());
    CHECK(theirs["handed_back"] == "peer");
    CHECK(theirs["wait_ns"].is_null());
    REQUIRE(root["handed_back"].size() == 1);
    CHECK(root["handed_back"][0]["times"] == 1);
    CHECK(root["handed_back"][0]["why"] == text_of(Reason::peer).what);
    CHECK(root["handed_back"][0]["help"].is_null());
    CHECK(root["handed_back"][0]["world_ranks"] == "1");
}

TEST_CASE("names of any bytes leave a report of lines and of JSON", "[stats]") {
    Row strange = row(0, 2, 10, Reason::none, "", 1);
    std::memset(strange.algorithm, '\xff', sizeof strange.algorithm);  // with no end
    std::memcpy(strange.algorithm, "a\nb\"", 4);
    Learned learned{};
    learned.candidates = {{"c\nd\xe9", 1}};
    const std::string name = "a\\x0ab\"" + std::string(sizeof strange.algorithm - 4, '\xff');
    const std::string text = table({{strange}}, 1, Counted::all_ranks, {{learned}});
    CHECK(std::ranges::count(text, '\n') == 4);
    CHECK(holds(text, name + " "));
    const auto report = nlohmann::json::parse(json({{strange}}, 1, {{learned}}));
    CHECK(report["calls"][0]["algorithm"].get<std::string>().starts_with("a\\x0ab\"\ufffd"));
    CHECK(report["learned"][0]["incumbent"] == "c\nd\ufffd");
}

TEST_CASE("the median is in the class that holds the middle call", "[stats]") {
    Row r = row(0, 0, 10, Reason::none, "eager", 0);
    r.time_class[11] = 0;
    r.time_class[4] = 3;
    r.time_class[20] = 1;
    auto root = nlohmann::json::parse(json(std::vector{r}, 1));
    CHECK(root["calls"][0]["median_ns"] == 16 + 10);  // two thirds into 16 to 31
}

TEST_CASE("COCO_STATS is 0, 1 or a .json file", "[stats]") {
    auto set = [](const char* value) {
        setenv("COCO_STATS", value, 1);
        return configure();
    };
    CHECK((set("1") && enabled()));
    CHECK((set("a.json") && enabled()));
    CHECK((set("0") && !enabled()));
    CHECK_FALSE(set("yes"));
    CHECK_FALSE(set(".json"));
    unsetenv("COCO_STATS");
    CHECK((configure() && !enabled()));
}

TEST_CASE("the table says what was learned, and from what", "[stats]") {
    Learned learned{.collective = 0,
                    .nodes = 1,
                    .ranks_per_node = 4,
                    .block_first = 33,
                    .block_last = 64,
                    .candidates = {{"eager", 2300, 2200, 2500}, {"mpi", 1200, 1100, 1300}, {"naive", 0}},
                    .incumbent = 1,
                    .calls = 1000,
                    .looks = 2,
                    .changes = 1,
                    .spent_ns = 12'000};
    Row row{};
    row.calls = 1;
    CHECK(table({&row, 1}, 4, Counted::all_ranks, {&learned, 1})
              .ends_with("MPI_Alltoall on 1 x 4 ranks, blocks to 64: learned mpi (1.20 us) against eager "
                         "(2.30 us), naive "
                         "(not tried), in 2 looks that took 12.00 us\n"));
    Learned unknown = learned;
    for (Learned::Candidate& candidate : unknown.candidates) candidate.time_ns = 0;
    CHECK(table({&row, 1}, 4, Counted::all_ranks, {&unknown, 1})
              .find(": nothing was learned of mpi (not tried) and eager (not tried)") != std::string::npos);
    learned.block_first = 0;
    learned.block_last = UINT64_MAX;
    learned.looks = 1;
    CHECK(table({&row, 1}, 4, Counted::all_ranks, {&learned, 1}).find("ranks, all blocks: learned") !=
          std::string::npos);
    auto candidates = nlohmann::json::parse(json({&row, 1}, 4, {&learned, 1}))["learned"][0]["candidates"];
    CHECK(candidates[0] ==
          nlohmann::json{{"name", "eager"}, {"time_ns", 2300}, {"low_ns", 2200}, {"high_ns", 2500}});
    CHECK(candidates[2]["low_ns"].is_null());
}

TEST_CASE("calls with equal keys share a row", "[stats]") {
    Call call{.collective = 2,
              .block_bytes = 0,
              .reason = Reason::none,
              .algorithm = "eager",
              .comm_ranks = 777,
              .bytes = 8,
              .messages = 3,
              .wire_bytes = 24,
              .total_ns = 0,
              .wait_ns = 0,
              .staged = true};
    record(call);
    call.total_ns = UINT64_MAX;
    record(call);
    call.block_bytes = 1;
    call.algorithm = "a name that is longer than a row can hold";
    record(call);
    record(call);
    call.block_bytes = kUnknownBytes;
    record(call);
    std::vector<Row> mine;
    for (const Row& r : rows(9))
        if (r.comm_ranks == 777) mine.push_back(r);
    REQUIRE(mine.size() == 3);
    CHECK(mine[0].calls == 2);
    CHECK(mine[0].rank == 9);
    CHECK(mine[0].bytes == 16);
    CHECK(mine[0].messages == 6);
    CHECK(mine[0].wire_bytes == 48);
    CHECK(mine[0].staged == 2);
    CHECK(mine[0].time_class[0] == 1);
    CHECK(mine[0].time_class[kTimeClasses - 1] == 1);
    CHECK(mine[1].block_class == 1);
    CHECK(std::string(mine[1].algorithm) == "a name that is longer than a");
    CHECK(mine[1].calls == 2);
    CHECK(mine[2].block_class == kUnknownClass);
    CHECK(holds(table(mine, 1), " unknown  a name"));
}

namespace {

// The text that `act` writes to stderr.
template <typename Act>
std::string stderr_of(Act act) {
    std::FILE* file = std::tmpfile();
    int before = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    act();
    dup2(before, STDERR_FILENO);
    close(before);
    std::rewind(file);
    std::string text;
    for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
    std::fclose(file);
    return text;
}

}  // namespace

TEST_CASE("report writes the file, or says that it cannot and prints the table", "[stats]") {
    Row only[] = {row(0, 0, 10, Reason::none, "eager", 1)};
    auto file = std::filesystem::temp_directory_path() / "coco_stats_test.json";
    setenv("COCO_STATS", file.c_str(), 1);
    CHECK(report(only, 1));
    std::ifstream in(file);
    CHECK(nlohmann::json::parse(in)["calls"].size() == 1);
    std::filesystem::remove(file);
    setenv("COCO_STATS", "/no/such/folder/a.json", 1);
    std::string said = stderr_of([&] { CHECK_FALSE(report(only, 1)); });
    CHECK(holds(said, "COCO_STATS=/no/such/folder/a.json: cannot be written: No such file"));
    CHECK(holds(said, table(only, 1)));
    unsetenv("COCO_STATS");
}
