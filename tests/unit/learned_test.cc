// SPDX-License-Identifier: BSD-3-Clause
// What jobs leave to the jobs after them: rules made of lessons, and the file that holds them.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "choose/rules_learned.h"
#include "policy/learned.h"
#include "policy_of.h"
#include "settings/learned_file.h"

using namespace coco;
using algorithms::Collective;

namespace {

policy::Choice choice_of(const char* text, Collective collective = Collective::alltoall) {
    policy::Choice choice;
    REQUIRE_FALSE(policy::parse_choice(text, collective, choice));
    return choice;
}

choose::Lesson lesson_of(int size_class, int rule, std::vector<const char*> candidates, int incumbent) {
    choose::Lesson lesson{.kind = 0,
                          .facts = {.collective = Collective::alltoall,
                                    .nodes = 1,
                                    .ranks_per_node = 4,
                                    .domains = 2,
                                    .block_bytes = 100},
                          .size_class = size_class,
                          .rule = rule,
                          .candidates = {}};
    lesson.knowledge.incumbent = incumbent;
    lesson.knowledge.calls = 5000;
    for (const char* candidate : candidates) {
        lesson.knowledge.of[lesson.candidates.size()].time_ns = 1234 * (std::ssize(lesson.candidates) + 1);
        lesson.candidates.push_back(choice_of(candidate));
    }
    return lesson;
}

constexpr const char* kLearnedFrom = R"(
[[rule]]
collective = "alltoall"
block = "-3000"
calls = "10-"
algorithm = "eager"
also = ["naive"]
[[rule]]
collective = "alltoall"
algorithm = "naive"
)";

const policy::LearnedKey kKey{"1.2.3", "Some MPI \"4.0\"\\", "a processor, 2 CPUs", "a network", "0123"};

// A folder of its own, which goes when the test ends.
struct Folder {
    Folder() {
        char name[] = "/tmp/coco_learned_XXXXXX";
        path = mkdtemp(name);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string path;
};

std::vector<policy::Rule> some_rules(std::size_t count = 3) {
    std::vector<choose::Lesson> lessons;
    for (std::size_t i = 0; i < count; ++i) {
        lessons.push_back(lesson_of(7, -1, {"eager", "mpi"}, 1));
        lessons.back().facts.ranks_per_node = static_cast<std::int32_t>(2 + i);
    }
    return choose::rules_learned(lessons, policy_of(kLearnedFrom), {});
}

std::string trouble_of(const std::string& path, const policy::LearnedKey& key = kKey) {
    std::string trouble;
    CHECK(settings::read_learned(path, key, trouble).empty());
    return trouble;
}

}  // namespace

TEST_CASE("a choice that proved faster becomes a rule for calls of its kind", "[learned]") {
    const policy::Policy policy = policy_of(kLearnedFrom);
    choose::Lesson lessons[] = {lesson_of(12, 0, {"eager", "mpi", "naive"}, 2),
                                lesson_of(6, 0, {"eager", "mpi", "naive"}, 0)};
    const std::vector<policy::Rule> rules = choose::rules_learned(lessons, policy, {});
    REQUIRE(rules.size() == 1);
    CHECK(rules[0].choice == choice_of("naive"));
    CHECK(rules[0].also == std::vector{choice_of("eager")});
    CHECK(rules[0].block.first == 2049);
    CHECK(rules[0].block.last == 3000);  // where the rule ends
    CHECK(rules[0].calls.first == 10);
    CHECK(rules[0].reason == "learned in 5000 calls: eager 1.23 us, mpi 2.47 us, naive 3.7 us");
    policy::Policy next = policy;
    next.rules.insert(next.rules.begin(), rules[0]);
    policy::Facts facts = lessons[0].facts;
    facts.calls = 50;
    facts.block_bytes = 2500;
    CHECK(policy::select(next, facts).rule == 0);
    facts.block_bytes = 2000;
    CHECK(policy::select(next, facts).rule == 1);
    facts.block_bytes = 2500;
    facts.crowded = true;
    CHECK(policy::select(next, facts).rule == 1);
    facts.crowded = false;
    facts.ranks_per_node = 5;
    CHECK(policy::select(next, facts).rule == 1);
}

TEST_CASE("of neighbours' lessons that no rule can tell apart the one that rests on most becomes a rule",
          "[learned]") {
    const policy::Policy policy = policy_of(kLearnedFrom);
    std::vector<choose::Lesson> lessons{lesson_of(6, 0, {"eager", "mpi"}, 1),
                                        lesson_of(6, 0, {"eager", "mpi"}, 0)};
    lessons[0].facts.most_blocks = 2;
    lessons[1].facts.most_blocks = 20;
    lessons[1].knowledge.calls = 100'000;
    CHECK(choose::rules_learned(lessons, policy, {}).empty());
    lessons[0].knowledge.results = 3;
    REQUIRE(choose::rules_learned(lessons, policy, {}).size() == 1);
    CHECK(choose::rules_learned(lessons, policy, {})[0].choice == choice_of("mpi"));
}

TEST_CASE("what is learned anew stands in the place of what was learned", "[learned]") {
    policy::Policy policy = policy_of(kLearnedFrom);
    const choose::Lesson first = lesson_of(7, 0, {"eager", "mpi", "naive"}, 1);
    const choose::Lesson other = lesson_of(8, 0, {"eager", "mpi", "naive"}, 1);
    std::vector<policy::Rule> rules = choose::rules_learned({{first, other}}, policy, {});
    REQUIRE(rules.size() == 2);
    // The next job begins with them.
    policy.rules.insert(policy.rules.begin(), rules.begin(), rules.end());
    rules = choose::rules_learned({{lesson_of(7, 0, {"mpi", "eager", "naive"}, 0)}}, policy, rules);
    CHECK(rules.size() == 2);
    rules = choose::rules_learned({{lesson_of(7, 0, {"mpi", "eager", "naive"}, 2)}}, policy, rules);
    REQUIRE(rules.size() == 2);
    CHECK(rules[1].choice == choice_of("naive"));
    CHECK(rules[0].choice == choice_of("mpi"));
    // Back to what the rules would choose by themselves.
    rules = choose::rules_learned({{lesson_of(7, 0, {"mpi", "eager", "naive"}, 1)}}, policy, rules);
    REQUIRE(rules.size() == 2);
    CHECK(rules[1].choice == choice_of("eager"));
}

TEST_CASE("a job reads the learned rules of communicators that are no larger than the job", "[learned]") {
    const std::vector<policy::Rule> rules = some_rules(4);  // 2 to 5 ranks on a node
    CHECK(choose::rules_for_job(rules, 1).empty());
    CHECK(choose::rules_for_job(rules, 4).size() == 3);
    CHECK(choose::rules_for_job(rules, 5).size() == 4);
    policy::Rule of_nodes = rules[0];
    of_nodes.nodes = {3, 3};  // 2 ranks on one, and a rank at least on each other
    CHECK(choose::rules_for_job({of_nodes}, 3).empty());
    CHECK(choose::rules_for_job({of_nodes}, 4).size() == 1);
    of_nodes.nodes = of_nodes.ranks = {UINT64_MAX, UINT64_MAX};
    CHECK(choose::rules_for_job({of_nodes}, 4).empty());
    policy::Rule of_any = rules[0];
    of_any.nodes = of_any.ranks = {};
    CHECK(choose::rules_for_job({of_any}, 1).size() == 1);
    of_any.ranks = {4, 4};
    CHECK(choose::rules_for_job({of_any}, 3).empty());
}

TEST_CASE("learned rules are kept in the policy's language", "[learned]") {
    const policy::Learned learned{kKey, some_rules()};
    const std::string text = policy::text_of(learned);
    policy::Learned read;
    REQUIRE_FALSE(policy::parse_learned(text, "test", read));
    CHECK(read.key == kKey);
    REQUIRE(read.rules.size() == learned.rules.size());
    CHECK(policy::text_of(read) == text);
    std::vector<policy::Rule> as_policy;
    CHECK_FALSE(policy::parse_rules(text, "test", as_policy));
    CHECK(as_policy.size() == learned.rules.size());
}

TEST_CASE("whatever an MPI library and a machine are called, what was learned with them can be read",
          "[learned]") {
    setenv("COCO_TOPOLOGY", "numa:2\t\xff", 1);
    const policy::Learned learned{settings::key_for("An \"MPI\" \x01\xe9\n\\", {}), {}};
    unsetenv("COCO_TOPOLOGY");
    CHECK(learned.key.mpi == "An \"MPI\" \\x01\\xe9\\x0a\\");
    policy::Learned again;
    const auto error = policy::parse_learned(policy::text_of(learned), "file", again);
    INFO((error ? error->line : ""));
    REQUIRE_FALSE(error);
    CHECK(again.key == learned.key);
    CHECK(again.rules.empty());
}

TEST_CASE("no quotes in a key end it", "[learned]") {
    for (const std::string text : {"'", "\"", "'''", "\"\"\"", "a '''\nb\tc '''", "\"\"\"\n'''\\"}) {
        policy::LearnedKey key = kKey;
        key.machine = key.transport = text;
        policy::Learned again;
        CHECK_FALSE(policy::parse_learned(policy::text_of({key, {}}), "file", again));
        CHECK(again.key == key);
    }
}

TEST_CASE("settings by which bytes move otherwise make another key, those of one job do not", "[learned]") {
    // Whatever this is run with.
    auto transport_with = [](const std::string& name, const char* value) {
        const char* const old = getenv(name.c_str());
        const std::optional<std::string> kept = old != nullptr ? std::optional(old) : std::nullopt;
        setenv(name.c_str(), value, 1);
        const std::string transport = settings::key_for("MPI", {}).transport;
        kept ? setenv(name.c_str(), kept->c_str(), 1) : unsetenv(name.c_str());
        return transport;
    };
    for (const std::string name : {"COCO_HEAP", "UCX_TLS", "FI_PROVIDER", "OMPI_MCA_btl",
                                   "OMPI_MCA_coll_tuned_priority", "MPIR_CVAR_CH4_NETMOD"}) {
        CHECK_THAT(transport_with(name, "one"), Catch::Contains(name + "=one"));
        CHECK(transport_with(name, "one") != transport_with(name, "other"));
        CHECK(transport_with(name, "one") == transport_with(name, "one"));
    }
    for (const std::string name :
         {"COCO_HEAP_LIMIT", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_btl_sm_backing_directory",
          "MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "UCX"})
        CHECK(transport_with(name, "one") == transport_with(name, "other"));
    CHECK_THAT(transport_with("UCX_TLS", "a\nb"), Catch::Contains("UCX_TLS=a\\x0ab"));
}

TEST_CASE("a file of learned rules is read by jobs of the same key alone", "[learned]") {
    Folder folder;
    const std::string path = folder.path + "/deeper/rules.toml";
    std::string trouble;
    CHECK(trouble_of(path).empty());  // there is none yet
    REQUIRE(settings::write_learned(path, {kKey, some_rules()}, trouble));
    CHECK(settings::read_learned(path, kKey, trouble).size() == 3);
    for (std::string policy::LearnedKey::*part :
         {&policy::LearnedKey::libcoco, &policy::LearnedKey::mpi, &policy::LearnedKey::machine,
          &policy::LearnedKey::transport, &policy::LearnedKey::policy}) {
        policy::LearnedKey other = kKey;
        other.*part += "x";
        CHECK(trouble_of(path, other).empty());
        CHECK(policy::hash_of(other) != policy::hash_of(kKey));
    }
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path + "/deeper"), {}) == 1);
}

TEST_CASE("no file of learned rules stops anybody", "[learned]") {
    Folder folder;
    const std::string path = folder.path + "/rules.toml";
    const std::string whole = policy::text_of({kKey, some_rules()});
    std::string trouble;
    for (std::size_t bytes = 0; bytes < whole.size(); bytes += 7) {
        std::ofstream(path, std::ios::trunc) << whole.substr(0, bytes);
        trouble.clear();
        CHECK(settings::read_learned(path, kKey, trouble).empty());
        CHECK(trouble.find('\n') == std::string::npos);
    }
    std::ofstream(path, std::ios::trunc) << std::string(100'000, '\0') << whole;
    CHECK_FALSE(trouble_of(path).empty());
    std::ofstream(path, std::ios::trunc) << "[[rule]]\nalgorithm = \"of_another_version\"\n" << whole;
    CHECK_FALSE(trouble_of(path).empty());
    std::ofstream(path, std::ios::trunc) << "# " << std::string(5'000'000, 'x') << '\n' << whole;
    CHECK_FALSE(trouble_of(path).empty());
    CHECK_FALSE(trouble_of(folder.path).empty());        // a folder
    CHECK_FALSE(trouble_of("/dev/null/rules").empty());  // in a file
    const std::string pipe = folder.path + "/pipe";
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    CHECK_FALSE(trouble_of(pipe).empty());
    CHECK_FALSE(settings::write_learned("/dev/null/rules", {kKey, some_rules()}, trouble));
    // A folder cannot be replaced, and nothing is left beside it.
    REQUIRE(mkdir((folder.path + "/folder").c_str(), 0700) == 0);
    CHECK_FALSE(settings::write_learned(folder.path + "/folder", {kKey, some_rules()}, trouble));
    CHECK(trouble.find('\n') == std::string::npos);
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 3);
}

TEST_CASE("what killed writers have left keeps nobody from writing, and goes after a day", "[learned]") {
    Folder folder;
    const std::string path = folder.path + "/rules.toml",
                      by_number = path + "." + std::to_string(getpid()) + ".part",
                      by_chance = path + ".aB3aaa.part", young = path + ".aaaaaa.part";
    const std::vector<std::string> others{folder.path + "/other.toml.aaaaaa.part", path + ".part",
                                          path + ".backup-1.part", path + ".20240131.part",
                                          path + ".backup.part"};
    std::string trouble;
    std::vector<std::string> old = others;
    old.insert(old.end(), {by_number, by_chance});
    std::ofstream(young) << "half";
    REQUIRE(chmod(young.c_str(), 0600) == 0);
    for (const std::string& left : old) {
        std::ofstream(left) << "half";
        REQUIRE(chmod(left.c_str(), left == others.back() ? 0644 : 0600) == 0);
    }
    const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(25);
    for (const std::string& left : old) std::filesystem::last_write_time(left, long_ago);
    REQUIRE(settings::write_learned(path, {kKey, some_rules()}, trouble));
    CHECK(settings::read_learned(path, kKey, trouble).size() == 3);
    CHECK_FALSE(std::filesystem::exists(by_number));
    CHECK_FALSE(std::filesystem::exists(by_chance));
    CHECK(std::filesystem::exists(young));
    for (const std::string& other : others) CHECK(std::filesystem::exists(other));
    // With the rules, and no unfinished file.
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) ==
          static_cast<std::ptrdiff_t>(others.size() + 2));
}

TEST_CASE("rules of another user, or that others may write, do not count", "[learned]") {
    Folder folder;
    const std::string path = folder.path + "/rules.toml";
    std::string trouble;
    REQUIRE(settings::write_learned(path, {kKey, some_rules()}, trouble));
    for (mode_t mode : {0666u, 0660u}) {
        REQUIRE(chmod(path.c_str(), mode) == 0);
        CHECK_FALSE(trouble_of(path).empty());
    }
    REQUIRE(chmod(path.c_str(), 0600) == 0);
    CHECK(settings::read_learned(path, kKey, trouble).size() == 3);
    if (chown(path.c_str(), 12345, 12345) == 0) CHECK_FALSE(trouble_of(path).empty());
}

TEST_CASE("learned rules and the folder that is made for them are for their user alone", "[learned]") {
    Folder folder;
    const std::string made = folder.path + "/deep/cache", path = made + "/rules.toml";
    std::string trouble;
    std::error_code error;
    const mode_t usual = umask(0);
    REQUIRE(settings::write_learned(path, {kKey, some_rules()}, trouble));
    umask(usual);
    struct stat facts {};
    REQUIRE(stat(path.c_str(), &facts) == 0);
    CHECK((facts.st_mode & 07777) == 0600);
    REQUIRE(stat(made.c_str(), &facts) == 0);
    CHECK((facts.st_mode & 07777) == 0700);
    if (geteuid() != 0) return;
    REQUIRE(chmod(folder.path.c_str(), 0755) == 0);
    const pid_t other_user = fork();
    if (other_user == 0)
        _exit(setresuid(65534, 65534, 65534) != 0 || std::ifstream(path).is_open() ||
              std::filesystem::exists(path, error));
    int status = -1;
    CHECK(waitpid(other_user, &status, 0) == other_user);
    CHECK(status == 0);
}

TEST_CASE("writers that are killed, and writers at once, leave whole files", "[learned]") {
    Folder folder;
    const std::string path = folder.path + "/rules.toml";
    std::string trouble;
    REQUIRE(settings::write_learned(path, {kKey, some_rules()}, trouble));
    for (int round = 0; round < 30; ++round) {
        pid_t writers[3];
        for (std::size_t w = 0; w < 3; ++w) {
            writers[w] = fork();
            if (writers[w] != 0) continue;
            std::string own;
            for (std::size_t i = 0;; ++i) settings::write_learned(path, {kKey, some_rules(3 + 40 * w)}, own);
        }
        for (int i = 0; i < 5; ++i) {
            usleep(500);
            CHECK(settings::read_learned(path, kKey, trouble).size() % 40 == 3);
            CHECK(trouble.empty());
        }
        for (pid_t writer : writers) {
            kill(writer, SIGKILL);
            int status = 0;
            CHECK(waitpid(writer, &status, 0) == writer);
        }
        CHECK(settings::read_learned(path, kKey, trouble).size() % 40 == 3);
    }
}

TEST_CASE("the cache lies where the base directory specification says", "[learned]") {
    const std::string home = getenv("HOME") ? getenv("HOME") : "",
                      cache = getenv("XDG_CACHE_HOME") ? getenv("XDG_CACHE_HOME") : "";
    setenv("HOME", "/home/somebody", 1);
    unsetenv("XDG_CACHE_HOME");
    const std::string name = "/learned-" + policy::hash_of(kKey) + ".toml";
    CHECK(settings::learned_path("", kKey) == "/home/somebody/.cache/coco" + name);
    setenv("XDG_CACHE_HOME", "/scratch/cache", 1);
    CHECK(settings::learned_path("", kKey) == "/scratch/cache/coco" + name);
    setenv("XDG_CACHE_HOME", "relative", 1);
    CHECK(settings::learned_path("", kKey) == "/home/somebody/.cache/coco" + name);
    unsetenv("HOME");
    CHECK(settings::learned_path("", kKey).empty());
    CHECK(settings::learned_path("here.toml", kKey) == "here.toml");
    home.empty() ? unsetenv("HOME") : setenv("HOME", home.c_str(), 1);
    cache.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", cache.c_str(), 1);
}
