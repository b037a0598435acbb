// SPDX-License-Identifier: BSD-3-Clause
#include "comm/world.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/index.h"
#include "channel/control_pool.h"
#include "mpi/library.h"
#include "mpi/wire.h"
#include "os/probe.h"
#include "os/shared_memory.h"
#include "stats/stats.h"

namespace coco::comm {
namespace {

// No rank keeps a table of a larger world: a card has some 140 bytes.
constexpr int kRanksMost = 16'384;

struct World {
    std::vector<WorldRank> ranks;
    std::int32_t rank = 0;
    bool has_control = false, can_meet = false, is_one_node = false;
    channel::Directory* directory = nullptr;
    std::vector<std::byte*> segments;  // by world rank; null: of another node
};

World& the_world() {
    static World* instance = new World;  // used until the process ends
    return *instance;
}

// Made in fresh room, which is zeros, so that little of it is touched before it is used.
channel::Directory* make_directory() {
    std::byte* room = heap::take_room(sizeof(channel::Directory));
    if (room != nullptr) os::populate(room, channel::Directory::kFirstBytes);
    return reinterpret_cast<channel::Directory*>(room);
}

WorldRank make_own_card(World& world, std::uint64_t choice_hash, bool takes_part, int ranks) {
    WorldRank mine{};
    mine.card.choice_hash = choice_hash;
    if (!takes_part) return mine;
    os::caches();  // looks them up now, and not in a collective
    mine.card = make_rank_card(choice_hash, world.rank, ranks);
    mine.counts = stats::enabled() ? 1 : 0;
    world.directory = make_directory();
    if (world.directory != nullptr) mine.directory_at = heap::offset_of(world.directory);
    world.has_control = ranks > 1 && channel::control_pool().prepare();
    return mine;
}

bool hashes_agree(const std::vector<WorldRank>& ranks) {
    return std::ranges::all_of(
        ranks, [&](const WorldRank& r) { return r.card.choice_hash == ranks[0].card.choice_hash; });
}

bool agree_by_least(std::uint64_t hash) {
    std::uint64_t mine[2] = {hash, ~hash}, least[2] = {};
    mpi::lib().Allreduce(mine, least, 2, mpi::lib().int64, mpi::lib().min, mpi::lib().comm_world);
    return least[0] == ~least[1];
}

// All mates are mapped now, while all ranks are here and can agree on what to do if one cannot be: later a
// program may close descriptors or give up rights. Nothing of a mapping is touched before it is needed, so
// that it costs next to nothing.
bool map_mates(World& world) {
    const std::uint64_t node = world.ranks[base::index(world.rank)].card.node_label;
    for (std::size_t r = 0; r < world.ranks.size(); ++r) {
        if (world.ranks[r].card.node_label != node) continue;
        world.segments[r] = heap::map_peer(world.ranks[r].card.segment);
        if (world.segments[r] == nullptr) return false;
    }
    return true;
}

bool all_can_meet(World& world) {
    const bool mapped = map_mates(world), wired = mpi::Wire::open_world();
    return mpi::on_all_ranks(mpi::lib().comm_world, mapped && wired && world.has_control);
}

}  // namespace

bool acquaint(std::uint64_t choice_hash, bool takes_part) {
    World& world = the_world();
    COCO_CHECK(world.ranks.empty(), "the ranks of the world are made known once");
    const int ranks = mpi::world_ranks();
    world.rank = mpi::world_rank();
    if (ranks > kRanksMost) return agree_by_least(choice_hash);
    const WorldRank mine = make_own_card(world, choice_hash, takes_part, ranks);
    world.ranks.resize(base::index(ranks));
    mpi::lib().Allgather(&mine, sizeof mine, mpi::lib().byte, world.ranks.data(), sizeof mine,
                         mpi::lib().byte, mpi::lib().comm_world);
    if (!hashes_agree(world.ranks)) return false;
    const bool none_off =
        std::ranges::all_of(world.ranks, [](const WorldRank& r) { return r.directory_at != 0; });
    if (!none_off) return true;
    world.segments.resize(world.ranks.size());
    world.can_meet = ranks > 1 && all_can_meet(world);
    world.is_one_node = std::ranges::all_of(
        world.ranks, [&](const WorldRank& r) { return r.card.node_label == world.ranks[0].card.node_label; });
    return true;
}

std::span<const WorldRank> world() { return the_world().ranks; }
bool can_meet() { return the_world().can_meet; }
bool anybody_counts() {
    return std::ranges::any_of(the_world().ranks, [](const WorldRank& r) { return r.counts != 0; });
}
bool world_is_one_node() { return the_world().is_one_node; }
std::int32_t rank_in_world() { return the_world().rank; }

std::byte* segment_of(std::int32_t world_rank) {
    COCO_CHECK(world_rank >= 0 && base::index(world_rank) < the_world().segments.size(),
               "a segment is that of a rank of the world");
    COCO_CHECK(the_world().segments[base::index(world_rank)] != nullptr,
               "a segment is that of a rank of this node");
    return the_world().segments[base::index(world_rank)];
}

channel::Directory& directory_of(std::int32_t world_rank) {
    const WorldRank& rank = the_world().ranks[base::index(world_rank)];
    COCO_CHECK(rank.directory_at != 0, "ranks that can meet have directories");
    return *reinterpret_cast<channel::Directory*>(segment_of(world_rank) + rank.directory_at);
}

channel::Directory& own_directory() {
    COCO_CHECK(the_world().directory != nullptr, "ranks that can meet have directories");
    return *the_world().directory;
}

}  // namespace coco::comm
