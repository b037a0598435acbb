// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/algorithm.h"
#include "base/check.h"
#include "base/index.h"

namespace coco::algorithms {

// Each of these functions is defined in the file that has its name.
using Maker = schedule::Schedule(const Shape&);
Maker make_naive, make_morton, make_numa_morton, make_tiled, make_eager, make_direct, make_segmented;
Maker make_bruck, make_multinode_morton, make_leader, make_multileader, make_node_aware, make_split,
    make_sloav, make_sloavx;
Maker make_aggregate, make_combining;

namespace {

constexpr CollectiveSet kExchanges = kAlltoalls | kAllgathers;
constexpr CollectiveSet kBcast = set_of(Collective::bcast);
// Sets of collectives, and values, for the table below.
constexpr CollectiveSet kPersonalSized =
    kAlltoalls & base::collectives_that([](const auto& row) { return row.sized; });
// The v and w forms of alltoall have sloav instead.
constexpr CollectiveSet kFlat = set_of(Collective::alltoall) | kAllgathers;
constexpr bool kCut = true, kWhole = false;
constexpr ParameterSet kPlain = 0;
using schedule::Cut;

constexpr Algorithm kRegistry[] = {
    {"naive", "every rank pulls its blocks from its peers, nearest domain first",
     "Li, Zhang, Hoefler 2018, section 4 (SH-Naive)",  //
     kExchanges | kNeighbors, Executor::pull, kWhole, kPlain, Cut::own, make_naive},
    {"morton", "the ranks copy equal shares of the Morton curve over all blocks",
     "Li, Zhang, Hoefler 2018, sections 2.1 and 2.2 (SH-CO)",  //
     kExchanges | kNeighbors, Executor::share, kWhole, kPlain, Cut::curve, make_morton},
    {"numa_morton", "as morton, but writing to the own NUMA domain only, one domain pair after another",
     "Li, Zhang, Hoefler 2018, section 2.4 (SH-NUMA-CO)",  //
     kExchanges | kNeighbors, Executor::share, kWhole, kPlain, Cut::domain_curves, make_numa_morton},
    {"tiled", "bands of 8 ranks copy for one another, a line with all its blocks at a time",
     "libcoco, after Li, Zhang, Hoefler 2018, section 2.2",  //
     set_of(Collective::alltoall) | set_of(Collective::allgather), Executor::share, kWhole,
     set_of(Parameter::width), Cut::own, make_tiled},
    {"eager", "every rank copies its blocks to shared scratch and goes on as soon as it has its own",
     "libcoco",  //
     kExchanges | kNeighbors | kBcast, Executor::scratch, kWhole, kPlain, Cut::own, make_eager},
    {"direct", "every rank copies the root's buffer at once",
     "Tu, Zou, Zhan, Zhao, Fan 2008, section III, in a single copy",  //
     kBcast, Executor::pull, kWhole, kPlain, Cut::own, make_direct},
    {"segmented", "the root fills a ring of segments in cache while the others empty it",
     "Tu, Zou, Zhan, Zhao, Fan 2008, section III (data tiling)",  //
     kBcast, Executor::ring, kCut, set_of(Parameter::segment), Cut::own, make_segmented},
    {"bruck", "blocks go the distance to their receivers digit by digit, in few messages",
     "Bruck, Ho, Kipnis, Upfal, Weathersby 1997",  //
     kFlat, Executor::messages, kWhole, set_of(Parameter::radix), Cut::own, make_bruck},
    {"multinode_morton", "ranks fetch equal shares of the Morton curve over all blocks and send them on",
     "Li, Zhang, Hoefler 2018, section 2.5 (MN-CO)",  //
     kFlat, Executor::messages, kWhole, kPlain, Cut::own, make_multinode_morton},
    {"leader", "one rank of each node speaks for it; the others fill and empty its bundles, or its ring",
     "Li, Zhang, Hoefler 2018, section 2.5; bcast: Tu, Zou, Zhan, Zhao, Fan 2008, sections II and III",
     kExchanges | kBcast, Executor::messages, kCut,
     set_of(Parameter::inner) | set_of(Parameter::radix) | set_of(Parameter::leaders) |
         set_of(Parameter::segment) | set_of(Parameter::route),
     Cut::own, make_leader},
    {"multileader", "as leader, but the ranks of a node share the other nodes between them", "libcoco",
     kExchanges, Executor::messages, kWhole, set_of(Parameter::leaders), Cut::own, make_multileader},
    {"node_aware",
     "each rank sends a node all it owes it, in one message to its like there, which shares it out",
     "Bienz, Gropp, Olson 2020; Namugwanya, Bienz, Schafer, Skjellum 2023",  //
     kExchanges, Executor::messages, kWhole, set_of(Parameter::window), Cut::own, make_node_aware},
    {"split",
     "a message from each rank to each of another node, while ranks of one node copy through scratch",
     "libcoco",  //
     set_of(Collective::alltoall), Executor::messages, kWhole, set_of(Parameter::window), Cut::own,
     make_split},
    {"sloav", "bruck for blocks of unequal sizes, whose lengths travel along",
     "Xu, Venkata, Graham, Wang, Liu, Yu 2013, section III",  //
     kPersonalSized, Executor::messages, kWhole, set_of(Parameter::radix), Cut::own, make_sloav},
    {"sloavx", "leaders run sloav over what the ranks of their nodes owe each other",
     "Xu, Venkata, Graham, Wang, Liu, Yu 2013, section IV",  //
     kPersonalSized, Executor::messages, kWhole, set_of(Parameter::radix) | set_of(Parameter::leaders),
     Cut::own, make_sloavx},
    {"aggregate", "what the ranks of a node owe those of another goes as one message, each block once",
     "libcoco",  //
     kNeighbors, Executor::bundles, kWhole, set_of(Parameter::leaders), Cut::own, make_aggregate},
    {"combining",
     "ranks with neighbours in common share their messages to them, each sending for both to half",
     "Mirsadeghi, Traeff, Balaji, Afsahi 2017",  //
     kNeighbors, Executor::combined, kWhole, set_of(Parameter::threshold) | set_of(Parameter::depth),
     Cut::own, make_combining},
};

constexpr bool marks_differ() {
    for (const Algorithm& one : kRegistry)
        for (const Algorithm& other : kRegistry)
            if (&one != &other && one.mark() == other.mark()) return false;
    return true;
}
static_assert(marks_differ());

constexpr std::string_view kInnerNames[kInners] = {"pairwise", "bruck", "multinode_morton"};
constexpr std::string_view kRouteNames[kRoutes] = {"cheapest", "tree", "chain", "scatter"};

// Returns: the enumerator whose name this is; nothing if there is none.
template <class Enum, int count>
std::optional<Enum> find_name(const std::string_view (&names)[count], std::string_view name) {
    for (int i = 0; i < count; ++i)
        if (names[i] == name) return static_cast<Enum>(i);
    return std::nullopt;
}

}  // namespace

std::string_view name_of(Inner inner) {
    COCO_CHECK(static_cast<int>(inner) < kInners, "an exchange is one of those that have a name");
    return kInnerNames[base::index(inner)];
}

std::optional<Inner> inner_of(std::string_view name) { return find_name<Inner>(kInnerNames, name); }

std::string_view name_of(Route route) {
    COCO_CHECK(static_cast<int>(route) < kRoutes, "a route is one of those that have a name");
    return kRouteNames[base::index(route)];
}

std::optional<Route> route_of(std::string_view name) { return find_name<Route>(kRouteNames, name); }

std::string text_of(const Parameters& parameters) {
    const Parameters preset;
    std::string text;
    auto add = [&](const std::string& word) { text.append(text.empty() ? ":" : ",").append(word); };
    if (parameters.inner != preset.inner) add(std::string(name_of(parameters.inner)));
    if (parameters.route != preset.route) add("route=" + std::string(name_of(parameters.route)));
    if (parameters.radix != preset.radix) add("radix=" + std::to_string(parameters.radix));
    if (parameters.leaders != preset.leaders) add("leaders=" + std::to_string(parameters.leaders));
    if (parameters.segment_bytes != preset.segment_bytes)
        add("segment=" + std::to_string(parameters.segment_bytes));
    if (parameters.threshold != preset.threshold) add("threshold=" + std::to_string(parameters.threshold));
    if (parameters.depth != preset.depth) add("depth=" + std::to_string(parameters.depth));
    if (parameters.window != preset.window) add("window=" + std::to_string(parameters.window));
    if (parameters.width != preset.width) add("width=" + std::to_string(parameters.width));
    return text;
}

Parameters shortest(const Algorithm& algorithm, Parameters parameters) {
    if (algorithm.executor == Executor::combined && parameters.threshold == schedule::kUsualThreshold)
        parameters.threshold = Parameters{}.threshold;
    return parameters;
}

std::span<const Algorithm> registry() { return kRegistry; }

const Algorithm& row_for(Collective collective, Executor executor) {
    for (const Algorithm& algorithm : kRegistry)
        if (algorithm.executor == executor && serves(algorithm, collective)) return algorithm;
    __builtin_trap();
}

const Algorithm* find(std::string_view name) {
    for (const Algorithm& algorithm : kRegistry)
        if (algorithm.name == name) return &algorithm;
    return nullptr;
}

}  // namespace coco::algorithms
