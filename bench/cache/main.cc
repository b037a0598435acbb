// SPDX-License-Identifier: BSD-3-Clause
//
// Misses in L1 and L2 of the algorithms of one node: replayed over a machine's caches, by the formula of Li,
// Zhang, Hoefler 2018, and, if asked for, counted here. What the figures mean: docs/cache.md.
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "bench/cache/count.h"
#include "bench/cache/formula.h"

namespace {

using namespace coco::cache;
using coco::algorithms::Exchange;
using Number = std::uint64_t;

constexpr char kUsage[] =
    "usage: cache MACHINE [--cold] [--prefetch] [--count] [OPTION NUMBER]...   MACHINE: phi e7 epyc xeon "
    "small\n"
    "  --cold: no cache has the buffers before the call; --prefetch: a miss also brings in the next line;\n"
    "  --count: also counts on this machine. In place of the machine's: --ranks --domains --line --l1-bytes\n"
    "  --l1-ways --l2-bytes --l2-ways. Besides: --page, of buffers (4096); --from, --to, of blocks (8, "
    "65536);\n"
    "  --seeds, how often ranks go on in random turns (2)\n";

struct Asked {
    Machine machine;
    Replay how;
    Number ranks = 0, from_bytes = 8, to_bytes = 65536, seeds = 2;
    bool counts = false;
};

[[noreturn]] void stop(const std::string& what) {
    std::fprintf(stderr, "cache: %s\n", what.c_str());
    std::exit(2);
}

Number number(const std::string& text, const std::string& option) {
    Number value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || *end != '\0' || value == 0 || value > 1u << 30)
        stop(option + " takes a number from 1 to 2^30, not \"" + text + "\"");
    return value;
}

Machine named(const std::string& name) {
    for (const Machine& one : machines())
        if (one.name == name) return one;
    stop("there is no machine \"" + name + "\"; --help names all");
}

void check(const Asked& asked) {
    const Machine& machine = asked.machine;
    if (const std::string why = wrong(machine); !why.empty()) stop(why);
    if (asked.ranks > machine.cores)
        stop(std::to_string(asked.ranks) + " ranks are more than the " + std::to_string(machine.cores) +
             " cores of \"" + machine.name + "\"");
    if (machine.domains > asked.ranks) stop("each domain has a rank or more");
    for (const Number bytes : {asked.how.page_bytes, asked.from_bytes, asked.to_bytes})
        if (!std::has_single_bit(bytes)) stop(std::to_string(bytes) + " bytes are no power of two");
    if (asked.how.page_bytes < 4096) stop("a page has 4096 bytes or more");
}

Asked read(int argc, char** argv) {
    if (argc < 2 || argv[1] == std::string("--help")) {
        std::fputs(kUsage, argc < 2 ? stderr : stdout);
        std::exit(argc < 2 ? 2 : 0);
    }
    Asked asked{named(argv[1]), {}};
    Machine& machine = asked.machine;
    asked.ranks = machine.cores;
    bool cold = false;
    const std::map<std::string, bool*> flags{
        {"--cold", &cold}, {"--prefetch", &asked.how.prefetch}, {"--count", &asked.counts}};
    const std::map<std::string, Number*> numbers{{"--ranks", &asked.ranks},
                                                 {"--domains", &machine.domains},
                                                 {"--line", &machine.line_bytes},
                                                 {"--page", &asked.how.page_bytes},
                                                 {"--from", &asked.from_bytes},
                                                 {"--to", &asked.to_bytes},
                                                 {"--seeds", &asked.seeds},
                                                 {"--l1-bytes", &machine.levels[0].bytes},
                                                 {"--l1-ways", &machine.levels[0].ways},
                                                 {"--l2-bytes", &machine.levels[1].bytes},
                                                 {"--l2-ways", &machine.levels[1].ways}};
    for (int i = 2; i < argc; ++i) {
        const auto flag = flags.find(argv[i]);
        const auto option = numbers.find(argv[i]);
        if (flag != flags.end())
            *flag->second = true;
        else if (option != numbers.end() && i + 1 < argc)
            *option->second = number(argv[++i], option->first);
        else
            stop("no such option, or no number: \"" + std::string(argv[i]) + "\"; --help names all");
    }
    asked.how.warm = !cold;
    check(asked);
    return asked;
}

void print_head(const Asked& asked) {
    const Machine& m = asked.machine;
    std::printf("# %s: %s\n# %d ranks in %d domains, lines of %d B, pages of %d B, %s%s\n", m.name.c_str(),
                m.source.c_str(), static_cast<int>(asked.ranks), static_cast<int>(m.domains),
                static_cast<int>(m.line_bytes), static_cast<int>(asked.how.page_bytes),
                asked.how.warm ? "buffers written before the call" : "caches empty before the call",
                asked.how.prefetch ? ", the next line prefetched" : "");
    for (const Level& level : m.levels)
        std::printf("# a cache of %d KiB, %d ways, for each %s\n", static_cast<int>(level.bytes / 1024),
                    static_cast<int>(level.ways), level.shared ? "domain" : "core");
    std::printf(
        "# Misses of a rank. lost: of them, because another core had written the line; random: all\n"
        "# misses, in random turns and places; formula: the paper's; counted: on this machine\n#%31s",
        "bytes");
    for (const char* name : {"L1", "L2"})
        std::printf(" %9s %9s %9s %9s %9s", name, "lost", "random", "formula", "counted");
    std::printf("%s\n", m.levels.size() > 2 ? "        L3" : "");
}

void print_cell(double value) { value < 0 ? std::printf(" %9s", "-") : std::printf(" %9.1f", value); }

void print_row(const Asked& asked, const Call& call, const std::string& name) {
    const Number blocks_of_line = std::max<Number>(1, asked.machine.line_bytes / call.block_bytes);
    const auto schedules =
        schedules_of(*coco::algorithms::find(name), call, static_cast<std::int32_t>(blocks_of_line));
    const auto counts = replay(asked.machine, call, asked.how, schedules);
    const auto mean = [&](Number all) { return static_cast<double>(all) / call.ranks; };
    std::vector<double> random(counts.size());
    Replay how = asked.how;
    how.random_turns = true;
    for (how.seed = 1; how.seed <= asked.seeds; ++how.seed) {
        const auto again = replay(asked.machine, call, how, schedules);
        for (std::size_t l = 0; l < again.size(); ++l)
            random[l] += mean(again[l].missed) / static_cast<double>(asked.seeds);
    }
    std::array<double, 2> here{-1, -1};
    if (asked.counts) here = counted(call, schedules, 2 * asked.machine.levels[1].bytes);
    std::printf("%-9s %-12s %10d", call.exchange == Exchange::alltoall ? "alltoall" : "allgather",
                name.c_str(), static_cast<int>(call.block_bytes));
    for (std::size_t l = 0; l < 2; ++l) {
        const auto by_paper = formula(name, call, asked.machine.line_bytes, asked.machine.levels[l].bytes);
        for (const double value :
             {mean(counts[l].missed), mean(counts[l].lost), random[l], by_paper.value_or(-1), here[l]})
            print_cell(value);
    }
    if (counts.size() > 2) print_cell(mean(counts[2].missed));
    std::printf("\n");
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    Asked asked = read(argc, argv);
    const auto ranks = static_cast<std::int32_t>(asked.ranks);
    const auto domains = static_cast<std::int32_t>(asked.machine.domains);
    const std::string why = asked.counts ? no_counters(ranks) : "";
    if (!why.empty()) std::fprintf(stderr, "cache: nothing is counted: %s\n", why.c_str());
    asked.counts = asked.counts && why.empty();
    print_head(asked);
    for (const Exchange exchange : {Exchange::alltoall, Exchange::allgather})
        for (const char* name : {"naive", "morton", "numa_morton", "eager", "tiled"})
            for (Number bytes = asked.from_bytes; bytes <= asked.to_bytes; bytes *= 2)
                print_row(asked, {exchange, ranks, domains, bytes}, name);
}
