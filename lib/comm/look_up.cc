// SPDX-License-Identifier: BSD-3-Clause
#include "comm/look_up.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/index.h"
#include "comm/comm.h"
#include "comm/deal.h"
#include "comm/notices.h"
#include "mpi/library.h"
#include "os/devices.h"
#include "schedule/bundles.h"
#include "schedule/sides.h"

namespace coco::comm {
namespace {

using algorithms::Collective;
using schedule::Bundles;
using schedule::Bundling;
using schedule::CurveCut;
using schedule::CurveEdge;
using schedule::Cut;
using schedule::Edge;
using schedule::EdgeShare;
using schedule::Neighborhood;

constexpr int kForms = 3, kFormW = 2;  // alltoall, alltoallv, alltoallw

// This rank's neighbours, in the order of its blocks; MPI_PROC_NULL stands for nobody.
struct Lists {
    std::vector<int> sources, destinations;
};

bool read_cartesian(const Comm& comm, Lists& lists) {
    int dimensions = 0;
    if (mpi::lib().Cartdim_get(comm.handle, &dimensions) != mpi::kSuccess) return false;
    for (int d = 0; d < dimensions; ++d)
        for (int source, destination; int side : {0, 1}) {
            if (mpi::lib().Cart_shift(comm.handle, d, 1, &source, &destination) != mpi::kSuccess)
                return false;
            lists.sources.push_back(side == 0 ? source : destination);
        }
    lists.destinations = lists.sources;
    return true;
}

bool read_graph(const Comm& comm, Lists& lists) {
    int count = 0;
    if (mpi::lib().Graph_neighbors_count(comm.handle, comm.rank, &count) != mpi::kSuccess) return false;
    lists.sources.resize(base::index(count));
    bool read =
        mpi::lib().Graph_neighbors(comm.handle, comm.rank, count, lists.sources.data()) == mpi::kSuccess;
    lists.destinations = lists.sources;
    return read;
}

bool read_distributed_graph(const Comm& comm, Lists& lists) {
    int sources = 0, destinations = 0, weighted = 0;
    if (mpi::lib().Dist_graph_neighbors_count(comm.handle, &sources, &destinations, &weighted) !=
        mpi::kSuccess)
        return false;
    lists.sources.resize(base::index(sources));
    lists.destinations.resize(base::index(destinations));
    std::vector<int> source_weights(lists.sources.size()), destination_weights(lists.destinations.size());
    return mpi::lib().Dist_graph_neighbors(comm.handle, sources, lists.sources.data(), source_weights.data(),
                                           destinations, lists.destinations.data(),
                                           destination_weights.data()) == mpi::kSuccess;
}

bool read_lists(const Comm& comm, Lists& lists) {
    int kind = mpi::lib().constants.undefined;
    if (mpi::lib().Topo_test(comm.handle, &kind) != mpi::kSuccess) return false;
    if (kind == mpi::lib().constants.cart) return read_cartesian(comm, lists);
    if (kind == mpi::lib().constants.graph) return read_graph(comm, lists);
    return kind == mpi::lib().constants.dist_graph && read_distributed_graph(comm, lists);
}

// Sends the number of each block to where the MPI library takes the block. Returns: by receive block, the
// number that came; fewer on an error.
std::vector<std::int32_t> ask_library(const Comm& comm, const Lists& lists, int form) {
    COCO_CHECK(form >= 0 && form < kForms, "a form is one of those that join blocks");
    constexpr int kBytes = sizeof(std::int32_t);
    // MPICH wants buffers that are there even where there are no blocks, and MPICH 4.0 looks at as many
    // counts and types as the communicator has ranks.
    std::size_t most = std::max({lists.sources.size(), lists.destinations.size(), base::index(comm.ranks)});
    std::vector<std::int32_t> numbers(most), came(most, -1);
    std::vector<int> counts(most, kBytes), at(most);
    std::vector<mpi::Aint> wide_at(most);
    mpi::Handles<mpi::Datatype> types(most, mpi::lib().byte);
    for (std::size_t i = 0; i < most; ++i) wide_at[i] = at[i] = static_cast<int>(i) * kBytes;
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = base::number(i);
    int rc = form == 0   ? mpi::lib().Neighbor_alltoall(numbers.data(), kBytes, mpi::lib().byte, came.data(),
                                                        kBytes, mpi::lib().byte, comm.handle)
             : form == 1 ? mpi::lib().Neighbor_alltoallv(numbers.data(), counts.data(), at.data(),
                                                         mpi::lib().byte, came.data(), counts.data(),
                                                         at.data(), mpi::lib().byte, comm.handle)
                         : mpi::lib().Neighbor_alltoallw(numbers.data(), counts.data(), wide_at.data(),
                                                         types.data(), came.data(), counts.data(),
                                                         wide_at.data(), types.data(), comm.handle);
    came.resize(rc == mpi::kSuccess ? lists.sources.size() : 0);
    return came;
}

bool is_whole(const Lists& lists, const std::vector<std::int32_t>& came) {
    if (came.size() != lists.sources.size()) return false;
    for (std::size_t i = 0; i < came.size(); ++i)
        if (lists.sources[i] >= 0 && came[i] < 0) return false;
    return true;
}

// Whether every rank sends as many blocks as it receives. Where one does not, MPICH 4.0's alltoallw receives
// nothing, or hangs: it is not asked, and what it should do is what alltoallv does.
bool all_are_even(const Comm& comm, const Lists& lists) {
    return mpi::on_all_ranks(comm.handle, lists.sources.size() == lists.destinations.size());
}

Neighborhood join(const Comm& comm, const Lists& lists, const std::vector<std::int32_t>& came) {
    COCO_CHECK(came.size() <= lists.sources.size(), "numbers come from sources");
    Neighborhood graph;
    graph.destinations.assign(lists.destinations.begin(), lists.destinations.end());
    for (std::int32_t& to : graph.destinations) to = std::max(to, -1);  // MPI_PROC_NULL is below 0
    graph.recv_blocks = base::number(lists.sources.size());
    for (std::size_t i = 0; i < came.size(); ++i)
        if (lists.sources[i] >= 0)
            graph.incoming.push_back({lists.sources[i], comm.rank, came[i], base::number(i)});
    std::ranges::sort(graph.incoming, [](const Edge& a, const Edge& b) {
        return a.sender != b.sender ? a.sender < b.sender : a.sent < b.sent;
    });
    return graph;
}

// Facts that all ranks must know alike. Over all ranks the least of each of the first numbers counts, and the
// sum of edges_between_nodes. Behind them travel the groups of sides (schedule/sides.h), 8 bytes a rank
// however many edges there are.
struct Facts {
    std::uint64_t joined, forms_agree, has_edges, has_wires, uses_no_device, blocks_missing;
    std::uint64_t edges_between_nodes;
    std::uint64_t ranks;
    static constexpr std::uint64_t kManyBlocks = 1ull << 40;

    std::span<std::int32_t> sides() {
        return {reinterpret_cast<std::int32_t*>(this + 1), 2 * base::index(ranks)};
    }
    void add(Facts& more) {
        COCO_CHECK(more.ranks == ranks, "facts that are joined are of the same ranks");
        for (auto number : {&Facts::joined, &Facts::forms_agree, &Facts::has_edges, &Facts::has_wires,
                            &Facts::uses_no_device, &Facts::blocks_missing})
            this->*number = std::min(this->*number, more.*number);
        edges_between_nodes += more.edges_between_nodes;
        schedule::join_sides(more.sides(), sides());
    }
};

Facts facts_of(const Comm& comm, const Neighbors& near, bool joined) {
    COCO_CHECK(near.graphs.size() == kForms, "there is a graph for each form");
    const Neighborhood& graph = near.graphs[0];
    auto has_edge = [](std::int32_t to) { return to >= 0; };
    auto leaves = [&](std::int32_t to) { return to >= 0 && comm.map.node[to] != comm.map.node[comm.rank]; };
    std::int32_t most = std::max(graph.recv_blocks, graph.send_blocks());
    return {.joined = joined,
            .forms_agree = near.graphs[0] == near.graphs[1] && near.graphs[0] == near.graphs[2],
            .has_edges = !graph.incoming.empty() || std::ranges::any_of(graph.destinations, has_edge),
            .has_wires = mpi::Wire::alive() < mpi::Wire::kMost,
            .uses_no_device = !os::uses_device(),
            .blocks_missing = Facts::kManyBlocks - base::index(most),
            .edges_between_nodes = base::index(std::ranges::count_if(graph.destinations, leaves)),
            .ranks = base::index(comm.ranks)};
}

void add_facts(void* more, void* facts, int* count, mpi::Datatype*) {
    if (*count == 0) return;  // a library may cut one element in pieces, some of them empty
    static_cast<Facts*>(facts)->add(*static_cast<Facts*>(more));
}

// Facts, and the sides behind them.
using FactBytes = std::vector<std::byte>;
Facts& facts_in(FactBytes& bytes) { return *reinterpret_cast<Facts*>(bytes.data()); }

FactBytes all_facts_of(const Comm& comm, const Neighbors& near, bool joined) {
    const schedule::Sides sides = schedule::sides_of(comm.rank, comm.ranks, near.graphs[0]);
    FactBytes bytes(sizeof(Facts) + sides.size() * sizeof sides[0]);
    facts_in(bytes) = facts_of(comm, near, joined);
    std::ranges::copy(sides, facts_in(bytes).sides().begin());
    return bytes;
}

// One element of one type, so that no library cuts it in pieces on the way.
FactBytes add_over_ranks(const Comm& comm, FactBytes mine) {
    COCO_CHECK(mine.size() % sizeof(std::uint64_t) == 0, "facts travel as words");
    FactBytes all(mine.size());
    mpi::Datatype type;
    mpi::Op op;
    // The type is made of words, so that it is aligned where the library puts it.
    static_assert(sizeof(Facts) % sizeof(std::uint64_t) == 0);
    mpi::lib().Type_contiguous(static_cast<int>(mine.size() / sizeof(std::uint64_t)), mpi::lib().int64,
                               &type);
    mpi::lib().Type_commit(&type);
    mpi::lib().Op_create(&add_facts, 1, &op);
    mpi::lib().Allreduce(mine.data(), all.data(), 1, type, op, comm.handle);
    mpi::lib().Op_free(&op);
    mpi::lib().Type_free(&type);
    return all;
}

std::vector<std::int32_t> list_nobody(const std::vector<int>& peers) {
    std::vector<std::int32_t> blocks;
    for (std::size_t i = 0; i < peers.size(); ++i)
        if (peers[i] < 0) blocks.push_back(base::number(i));
    return blocks;
}

stats::Reason make_wire(Comm& comm, Neighbors& near) {
    near.wire = mpi::Wire::make(comm.handle);
    const bool all_made = mpi::on_all_ranks(comm.handle, near.wire != nullptr);
    if (!all_made) near.wire.reset();
    comm.lane.post.wire = near.wire.get();
    return all_made ? stats::Reason::none : stats::Reason::many_communicators;
}

void list_readers(const Comm& comm, Neighbors& near) {
    auto& runs = near.read_by_mates;
    std::int32_t i = 0;
    for (std::int32_t to : near.graphs[0].destinations) {
        const bool read = to >= 0 && to != comm.rank && comm.map.node[to] == comm.map.node[comm.rank];
        if (!read)
            near.unread.push_back(i);
        else if (runs.empty() || runs.back().first + runs.back().count != i)
            runs.push_back({i, 1});
        else
            ++runs.back().count;
        ++i;
    }
    near.has_readers = !runs.empty();
}

// Fills in what follows from this rank's graphs and lists, and from the sides of all ranks
// (schedule/sides.h).
void fill(const Comm& comm, const Lists& lists, std::span<const std::int32_t> sides, Neighbors& near) {
    COCO_CHECK(!near.graphs.empty(), "neighbours are known by a graph");
    const std::int32_t groups = schedule::groups_of_all(sides);
    near.sizes_agree = groups != 0;
    near.one_size = groups == 1;
    list_readers(comm, near);
    near.to_nobody = list_nobody(lists.destinations);
    near.sends_nothing = near.to_nobody.size() == lists.destinations.size();
    near.receives_nothing = near.graphs[0].incoming.empty();
    near.from_nobody = list_nobody(lists.sources);
}

// Fills in `near` by collectives of the MPI library.
stats::Reason make_by_library(Comm& comm, const Lists& lists, Neighbors& near) {
    bool joined = true;
    const bool even = all_are_even(comm, lists);
    for (int form = 0; form < kForms; ++form) {
        if (form == kFormW && !even) {
            near.graphs.push_back(near.graphs.back());
            continue;
        }
        auto came = ask_library(comm, lists, form);
        joined = joined && is_whole(lists, came);
        near.graphs.push_back(join(comm, lists, came));
    }
    FactBytes facts = add_over_ranks(comm, all_facts_of(comm, near, joined));
    Facts& all = facts_in(facts);
    COCO_CHECK(all.blocks_missing <= Facts::kManyBlocks, "no rank has more blocks than can be counted");
    if (!all.joined) return stats::Reason::bad_arguments;
    if (!all.uses_no_device) return stats::Reason::device_memory;
    if (all.forms_agree) near.graphs.resize(1);
    near.has_rank_without_edges = !all.has_edges;
    near.edges_between_nodes = all.edges_between_nodes;
    near.most_blocks = base::number(Facts::kManyBlocks - all.blocks_missing);
    fill(comm, lists, all.sides(), near);
    if (comm.wire != nullptr) return stats::Reason::none;
    return all.has_wires ? make_wire(comm, near) : stats::Reason::many_communicators;
}

// A rank's lists as its mates read them: the number of its control block, whether it uses a device, how many
// sources, and both lists.
Notice notice_of(const Comm& comm, const Lists& lists) {
    Notice notice{
        base::number(std::min<std::uint64_t>(comm.lane.channel.control_number(), mpi::Wire::kNumbersMost)),
        os::uses_device() ? 1 : 0, base::number(lists.sources.size())};
    notice.insert(notice.end(), lists.sources.begin(), lists.sources.end());
    notice.insert(notice.end(), lists.destinations.begin(), lists.destinations.end());
    return notice;
}

struct Read {
    std::int32_t number, uses_device;
    std::span<const std::int32_t> sources, destinations;
};

Read read_notice(const Notice& notice) {
    const std::span<const std::int32_t> words(notice);
    COCO_CHECK(words.size() >= 3 && words[2] >= 0, "a notice says how many sources there are");
    const auto sources = base::index(words[2]);
    COCO_CHECK(sources <= words.size() - 3, "a notice lists all sources");
    return {words[0], words[1], words.subspan(3, sources), words.subspan(3 + sources)};
}

// The edges of ranks that name each other once: by sender and receiver, the number of the receiver's block
// among the sender's.
using Joined = std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t>;

// Returns: false if two ranks have several edges, or do not both know of one: only the library says how those
// are joined.
bool join_all(const std::vector<Read>& all, Joined& joined) {
    std::size_t named = 0;
    for (std::size_t from = 0; from < all.size(); ++from)
        for (std::size_t i = 0; i < all[from].destinations.size(); ++i) {
            const std::int32_t to = all[from].destinations[i];
            if (to < 0) continue;
            ++named;
            joined[{base::number(from), to}] = base::number(i);
        }
    if (joined.size() != named) return false;
    std::set<std::pair<std::int32_t, std::int32_t>> received;
    for (std::size_t to = 0; to < all.size(); ++to)
        for (std::int32_t from : all[to].sources) {
            const std::pair edge{from, base::number(to)};
            if (from >= 0 && !(joined.contains(edge) && received.insert(edge).second)) return false;
        }
    return received.size() == named;
}

Neighborhood graph_of_rank(const Joined& joined, const Read& read, std::int32_t rank) {
    Neighborhood graph;
    graph.destinations.assign(read.destinations.begin(), read.destinations.end());
    for (std::int32_t& to : graph.destinations) to = std::max(to, -1);  // MPI_PROC_NULL is below 0
    graph.recv_blocks = base::number(read.sources.size());
    for (std::size_t i = 0; i < read.sources.size(); ++i)
        if (const std::int32_t from = read.sources[i]; from >= 0)
            graph.incoming.push_back({from, rank, joined.at({from, rank}), base::number(i)});
    std::ranges::sort(graph.incoming, [](const Edge& a, const Edge& b) { return a.sender < b.sender; });
    return graph;
}

// Fills in `near`, on one node, by notices that the ranks exchange in shared memory. Returns: nothing, on all
// ranks, if the library has to be asked.
std::optional<stats::Reason> make_by_notices(Comm& comm, const Lists& lists, Neighbors& near) {
    const std::vector<Notice> notices = exchange_notices(comm, notice_of(comm, lists));
    if (notices.empty()) return {};
    COCO_CHECK(notices.size() == base::index(comm.ranks), "each rank tells its neighbours");
    std::vector<Read> all;
    std::vector<std::int32_t> numbers;
    for (const Notice& notice : notices) {
        all.push_back(read_notice(notice));
        numbers.push_back(all.back().number);
    }
    Joined joined;
    if (std::ranges::max(numbers) >= mpi::Wire::kNumbersMost || !join_all(all, joined)) return {};
    if (std::ranges::any_of(all, &Read::uses_device)) return stats::Reason::device_memory;
    schedule::Sides sides;
    std::size_t most_blocks = 0;
    for (std::int32_t r = 0; r < comm.ranks; ++r) {
        const Read& read = all[base::index(r)];
        Neighborhood graph = graph_of_rank(joined, read, r);
        const schedule::Sides known = schedule::sides_of(r, comm.ranks, graph);
        if (r == 0)
            sides = known;
        else
            schedule::join_sides(known, sides);
        auto has_edge = [](std::int32_t to) { return to >= 0; };
        near.has_rank_without_edges |=
            graph.incoming.empty() && std::ranges::none_of(graph.destinations, has_edge);
        most_blocks = std::max({most_blocks, read.sources.size(), read.destinations.size()});
        if (r == comm.rank) near.graphs.push_back(std::move(graph));
    }
    near.most_blocks = base::number(most_blocks);
    fill(comm, lists, sides, near);
    near.wire = mpi::Wire::within_world(*comm.world_ranks, comm.rank, std::move(numbers));
    comm.lane.post.wire = near.wire.get();
    return stats::Reason::none;
}

stats::Reason make(Comm& comm, Neighbors& near) {
    Lists lists;
    // Without a topology on one rank there is none on any.
    if (!read_lists(comm, lists)) return stats::Reason::bad_arguments;
    const bool on_node = comm.id != 0 && comm.wire == nullptr;
    if (on_node)
        if (const auto reason = make_by_notices(comm, lists, near)) return *reason;
    return make_by_library(comm, lists, near);
}

// The ranks that touch this one's buffers, when each says whose it touches.
std::vector<std::int32_t> hear_touching(const Comm& comm, const std::vector<CurveEdge>& copied) {
    auto ranks = base::index(comm.ranks);
    std::vector<char> touched(ranks), by(ranks);
    for (const CurveEdge& c : copied) touched[c.edge.sender] = touched[c.edge.receiver] = 1;
    mpi::lib().Alltoall(touched.data(), 1, mpi::lib().byte, by.data(), 1, mpi::lib().byte, comm.handle);
    std::vector<std::int32_t> touching;
    for (std::int32_t r = 0; r < comm.ranks; ++r)
        if (by[r] && r != comm.rank) touching.push_back(r);
    return touching;
}

EdgeShare cut_curves(const Comm& comm, const Neighborhood& graph, Cut kind,
                     std::span<const std::uint64_t> weights) {
    COCO_CHECK(weights.empty() || weights.size() >= base::index(graph.recv_blocks),
               "each block that is received has a weight");
    CurveCut cut(comm.map, kind, comm.rank);
    std::vector<CurveEdge> edges;
    std::vector<std::int32_t> to;
    for (const Edge& edge : graph.incoming) {
        if (comm.map.node[edge.sender] != comm.map.node[comm.rank]) continue;
        edges.push_back(cut.place(edge, weights.empty() ? 1 : weights[edge.received]));
        to.push_back(cut.gatherer_of(edges.back()));
    }
    edges = deal(comm, edges, to);
    CurveCut::sort(edges);
    auto steps = base::index(cut.steps());
    auto mine = cut.weights_of(edges);
    std::vector<std::uint64_t> all(steps * base::index(comm.ranks));
    mpi::lib().Allgather(mine.data(), static_cast<int>(steps), mpi::lib().int64, all.data(),
                         static_cast<int>(steps), mpi::lib().int64, comm.handle);
    to = cut.copiers_of(edges, all);
    edges = deal(comm, edges, to);
    CurveCut::sort(edges);
    EdgeShare share{.edges = {}, .touching = hear_touching(comm, edges)};
    for (const CurveEdge& c : edges) share.edges.push_back(c.edge);
    return share;
}

Bundles make_bundles(const Comm& comm, const Neighborhood& graph, bool personal, std::int32_t leaders) {
    Bundling bundling(comm.map, comm.rank, graph, personal, leaders);
    auto deliver = [&](const Bundling::Mail& mail) { return deal(comm, mail.letters, mail.to); };
    auto asked = deliver(bundling.ask());
    auto assigned = deliver(bundling.assign(std::move(asked)));
    return bundling.finish(deliver(bundling.lay_out(std::move(assigned))));
}

}  // namespace

Neighbors& look_up_neighbors(Comm& comm) {
    COCO_CHECK_DEAR(comm.lane.channel.is_open(), "neighbours are looked up on a communicator that is open");
    if (comm.neighbors == nullptr) {
        comm.neighbors = std::make_unique<Neighbors>();
        comm.neighbors->closed = make(comm, *comm.neighbors);
    }
    return *comm.neighbors;
}

const EdgeShare* find_share(const Comm& comm, Collective collective, Cut cut) {
    COCO_CHECK_DEAR(comm.neighbors != nullptr, "a share is that of neighbours");
    for (const Neighbors::Kept& kept : comm.neighbors->shares)
        if (kept.collective == collective && kept.cut == cut) return kept.share.get();
    return nullptr;
}

const EdgeShare& make_share(Comm& comm, Collective collective, Cut cut,
                            std::span<const std::uint64_t> weights) {
    if (const EdgeShare* known = find_share(comm, collective, cut)) return *known;
    COCO_CHECK(comm.neighbors->closed == stats::Reason::none, "a share is made of neighbours that are known");
    Neighbors& near = *comm.neighbors;
    const Neighborhood& graph = near.graph_of(collective);
    auto share = std::make_unique<EdgeShare>(cut == Cut::own ? schedule::own_share(comm.map, comm.rank, graph)
                                                             : cut_curves(comm, graph, cut, weights));
    return *near.shares.emplace_back(Neighbors::Kept{collective, cut, std::move(share)}).share;
}

const Bundles& make_bundles(Comm& comm, Collective collective, std::int32_t leaders) {
    Neighbors& near = *comm.neighbors;
    const Neighborhood& graph = near.graph_of(collective);
    const bool personal = base::is_personal(collective);
    for (const Neighbors::KeptBundles& kept : near.bundles)
        if (kept.graph == &graph && kept.personal == personal && kept.leaders == leaders)
            return *kept.bundles;
    auto bundles = std::make_unique<Bundles>(make_bundles(comm, graph, personal, leaders));
    return *near.bundles.emplace_back(Neighbors::KeptBundles{&graph, personal, leaders, std::move(bundles)})
                .bundles;
}

}  // namespace coco::comm
