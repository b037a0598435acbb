// SPDX-License-Identifier: BSD-3-Clause
#include "comm/bond.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/index.h"
#include "comm/arrange.h"
#include "comm/comm.h"
#include "comm/handles.h"
#include "comm/meeting.h"
#include "comm/world.h"
#include "mpi/library.h"

namespace coco::comm {
namespace {

// So many states that no communicator uses are kept for the same members.
constexpr std::size_t kIdleMost = 2;
// Members of whom no communicator is alive are kept up to so many: programs make and free the same ones in
// turn.
constexpr std::size_t kUnownedMost = 64;

struct All {
    std::mutex mutex;
    std::map<std::vector<std::int32_t>, Members*> members;
    std::vector<Members*> unowned;  // the longest without owner first
};
// Never destroyed: communicators may be freed after static destructors have run.
All& all() {
    static All* instance = new All;
    return *instance;
}

// A bijective mixing of 64 bits (the finalizer of MurmurHash3): unequal numbers stay unequal.
std::uint64_t scramble(std::uint64_t x) {
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

thread_local bool t_copies_nothing = false;  // WithoutCopies

int copy_bond(mpi::Comm, int, void*, void* value, void* copy, int* flag) {
    auto* parent = static_cast<Bond*>(value);
    const std::uint64_t id = t_copies_nothing ? 0 : parent->next_child();
    *flag = id != 0;
    if (id == 0) return mpi::kSuccess;
    Members* members = parent->members != nullptr ? parent->members->keep() : nullptr;
    *static_cast<void**>(copy) = new Bond(id, members);
    return mpi::kSuccess;
}

int delete_bond(mpi::Comm, int, void* value, void*) {
    delete static_cast<Bond*>(value);
    forget_handles();
    return mpi::kSuccess;
}

int keyval() {
    static const int key = [] {
        int made = mpi::lib().constants.keyval_invalid;
        mpi::lib().Comm_create_keyval(copy_bond, delete_bond, &made, nullptr);
        return made;
    }();
    return key;
}

void fill_state(Comm& comm, const Members& members) {
    comm.world_ranks = &members.world_ranks();
    comm.rank = members.own_rank();
    comm.ranks = members.size();
    std::vector<const RankCard*> cards;
    for (const std::int32_t world_rank : members.world_ranks())
        cards.push_back(&world()[base::index(world_rank)].card);
    arrange(comm, cards);
}

// Makes the state as if nobody had called on the communicator yet. What depends on its members alone stays.
void renew(Comm& comm) {
    COCO_CHECK(!comm.lane.channel.is_open(), "state that is made anew has left its channel");
    if (comm.closed != stats::Reason::none) return;
    comm.closed = stats::Reason::not_set_up;
    comm.settled = false;
    if (comm.neighbors != nullptr) {
        comm.schedules.forget_neighbors();
        comm.neighbors.reset();
        comm.lane.post.wire = nullptr;
    }
    comm.lane.blocks.release_rooms();
    comm.choices.forget();
    comm.schedules.forget_fits();  // the scratch is given up
}

// Leaves a communicator that was freed. Its members keep the state if it can be used again.
void part(std::unique_ptr<Comm> comm, Members& members) {
    COCO_CHECK(comm != nullptr && comm->ranks == members.size(),
               "a communicator that is left had these members");
    if (comm->lane.channel.is_open() && !comm->lane.control_is_lone) leave_mates(*comm);
    const bool lasts = comm->closed == stats::Reason::none || comm->closed == stats::Reason::not_set_up ||
                       comm->closed == stats::Reason::single_rank;
    if (comm->wire != nullptr || comm->lane.control_is_lone || !lasts) return;
    renew(*comm);
    comm->bond = nullptr;
    members.give_idle(std::move(comm));
}

}  // namespace

std::vector<std::int32_t> ranks_in_world_of(mpi::Comm handle) {
    mpi::Group world, group;
    int ranks = 0;
    mpi::lib().Comm_group(mpi::lib().comm_world, &world);
    mpi::lib().Comm_group(handle, &group);
    mpi::lib().Group_size(group, &ranks);
    std::vector<int> own(base::index(ranks)), there(own.size());
    std::iota(own.begin(), own.end(), 0);
    mpi::lib().Group_translate_ranks(group, ranks, own.data(), world, there.data());
    mpi::lib().Group_free(&world);
    mpi::lib().Group_free(&group);
    return {there.begin(), there.end()};
}

WithoutCopies::WithoutCopies() : outer_(std::exchange(t_copies_nothing, true)) {}
WithoutCopies::~WithoutCopies() { t_copies_nothing = outer_; }

Members::Members(std::vector<std::int32_t> world_ranks) : world_ranks_(std::move(world_ranks)) {
    own_rank_ = base::number(std::ranges::find(world_ranks_, rank_in_world()) - world_ranks_.begin());
    COCO_CHECK(own_rank_ < size(), "this rank is one of its members");
}
Members::~Members() = default;

Members* Members::of(std::vector<std::int32_t> world_ranks) {
    COCO_CHECK(!world_ranks.empty(), "members are ranks");
    All& a = all();
    std::lock_guard lock(a.mutex);
    Members*& found = a.members[world_ranks];
    if (found == nullptr) found = new Members(std::move(world_ranks));
    if (found->owners_++ == 0) std::erase(a.unowned, found);
    return found;
}

Members* Members::keep() {
    std::lock_guard lock(all().mutex);
    COCO_CHECK(owners_ > 0, "members that are kept have an owner");
    ++owners_;
    return this;
}

void Members::release() {
    All& a = all();
    std::unique_ptr<Members, void (*)(Members*)> oldest(nullptr, [](Members* m) { delete m; });
    std::lock_guard lock(a.mutex);
    COCO_CHECK(owners_ > 0, "members are released by their owners");
    if (--owners_ != 0) return;
    a.unowned.push_back(this);
    if (a.unowned.size() <= kUnownedMost) return;
    oldest.reset(a.unowned.front());
    a.unowned.erase(a.unowned.begin());
    a.members.erase(oldest->world_ranks_);
}

std::unique_ptr<Comm> Members::take_idle() {
    std::lock_guard lock(all().mutex);
    if (idle_.empty()) return nullptr;
    std::unique_ptr<Comm> comm = std::move(idle_.back());
    idle_.pop_back();
    return comm;
}

void Members::give_idle(std::unique_ptr<Comm> comm) {
    COCO_CHECK(comm != nullptr && !comm->lane.channel.is_open(),
               "state that is given back has left its channel");
    std::lock_guard lock(all().mutex);
    if (idle_.size() < kIdleMost) idle_.push_back(std::move(comm));
}

Bond::Bond(std::uint64_t identity, Members* known) : id(identity), members(known) {
    COCO_CHECK(id == 0 || id % 2 == 1, "identities are odd");
}

Bond::~Bond() {
    if (comm != nullptr && members != nullptr) part(std::move(comm), *members);
    if (members != nullptr) members->release();
}

std::uint64_t Bond::next_child() { return id != 0 ? scramble(id + scramble(++children)) | 1 : 0; }

Members& Bond::members_of(mpi::Comm handle) {
    COCO_CHECK(id != 0, "members are those of a communicator with an identity");
    if (members == nullptr) members = Members::of(ranks_in_world_of(handle));
    return *members;
}

std::unique_ptr<Comm> make_state(mpi::Comm handle, Bond& bond) {
    Members& members = bond.members_of(handle);
    std::unique_ptr<Comm> comm = members.take_idle();
    COCO_CHECK(comm == nullptr || comm->ranks == members.size(), "state is used again for the same members");
    if (comm == nullptr) {
        comm = std::make_unique<Comm>();
        fill_state(*comm, members);
    }
    comm->handle = handle;
    comm->id = bond.id;
    comm->bond = &bond;
    return comm;
}

Bond* find_bond(mpi::Comm handle, bool* valid) {
    void* value = nullptr;
    int found = 0;
    const bool asked = mpi::lib().Comm_get_attr(handle, keyval(), &value, &found) == mpi::kSuccess;
    if (valid != nullptr) *valid = asked;
    return asked && found ? static_cast<Bond*>(value) : nullptr;
}

Bond* attach(mpi::Comm handle, std::unique_ptr<Bond> bond) {
    COCO_CHECK(bond != nullptr, "a bond hangs on a communicator");
    if (mpi::lib().Comm_set_attr(handle, keyval(), bond.get()) != mpi::kSuccess) return nullptr;
    return bond.release();
}

void bind_world() {
    COCO_CHECK(can_meet() && !world().empty(), "the ranks of the world know each other");
    std::vector<std::int32_t> everybody(world().size());
    std::iota(everybody.begin(), everybody.end(), 0);
    auto bond = std::make_unique<Bond>(world()[0].card.segment.cookie | 1, Members::of(std::move(everybody)));
    if (find_bond(mpi::lib().comm_world) == nullptr) attach(mpi::lib().comm_world, std::move(bond));
}

void bind_child(mpi::Comm parent, mpi::Comm made) {
    Bond* bond = can_meet() ? find_bond(parent) : nullptr;
    const std::uint64_t id = bond != nullptr ? bond->next_child() : 0;
    if (id != 0 && made != mpi::lib().comm_null) attach(made, std::make_unique<Bond>(id));
}

}  // namespace coco::comm
