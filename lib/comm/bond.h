// SPDX-License-Identifier: BSD-3-Clause
//
// The attribute that hangs on a communicator: the identity by which its ranks know it alike, its members, and
// the state of its calls once there is some.
//
// An identity is a number that all ranks of the communicator derive from facts that they share:
// MPI_COMM_WORLD has one, and the n-th communicator that is made from another has one that follows from its
// parent's and from n, as all ranks of the parent make its children in one order. MPI copies the attribute
// itself when it duplicates a communicator; other ways to make one are doors (interpose/mpi_c.cc), which call
// bind_child(). A communicator that came into being unseen, or of other parents than these (sessions,
// intercommunicators, other worlds), has no identity: its ranks meet by a collective of the MPI library.
//
// Called by find.cc, by dispatch in MPI_Init, and by the doors that make communicators. Thread safety: any
// thread; MPI allows one thread at a time to make a child of a communicator. Fails: never; without memory
// there is no identity on this rank, and the job ends, as the others wait for it (heap/heap.h, t_undivided).
#pragma once
#include "base/index.h"
#include "mpi/handles.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace coco::comm {

struct Comm;

// The ranks of one or several communicators, in their order. State that was made for these ranks waits here
// until it is used again for another communicator of theirs.
class Members {
  public:
    // The one object for these ranks of the world. To be given back by release().
    static Members* of(std::vector<std::int32_t> world_ranks);
    Members* keep();  // adds an owner
    void release();

    const std::vector<std::int32_t>& world_ranks() const { return world_ranks_; }
    std::int32_t size() const { return base::number(world_ranks_.size()); }
    std::int32_t own_rank() const { return own_rank_; }

    // Takes state that was given back; null if there is none. State that is given back must be as good as
    // new; it is dropped when there is enough.
    std::unique_ptr<Comm> take_idle();
    void give_idle(std::unique_ptr<Comm> comm);

  private:
    explicit Members(std::vector<std::int32_t> world_ranks);
    ~Members();

    const std::vector<std::int32_t> world_ranks_;
    std::int32_t own_rank_ = 0;
    int owners_ = 0;
    std::vector<std::unique_ptr<Comm>> idle_;
};

struct Bond {
    std::uint64_t id = 0;        // 0: none
    std::uint64_t children = 0;  // how many communicators were made from this one
    Members* members = nullptr;  // null: not looked up yet, or without an identity
    std::unique_ptr<Comm> comm;  // null until collectives of ours have been called often enough
    std::uint64_t weight = 0;    // of these calls, until the communicator is set up (find.cc)

    explicit Bond(std::uint64_t identity, Members* known = nullptr);
    ~Bond();
    Bond(const Bond&) = delete;
    Bond& operator=(const Bond&) = delete;

    std::uint64_t next_child();  // the identity of the next child; 0 where this one has none itself
    // Looks the members up where they are not known. Requires: id is not 0.
    Members& members_of(mpi::Comm handle);
};

// Makes the state of a communicator with an identity, closed: new, or the one that an earlier communicator
// left.
std::unique_ptr<Comm> make_state(mpi::Comm handle, Bond& bond);

// While it lives, communicators that this thread makes get no copy of a bond, and are not counted as
// children: MPI_Comm_create_group is called by some ranks of the parent only.
class WithoutCopies {
  public:
    WithoutCopies();
    ~WithoutCopies();
    WithoutCopies(const WithoutCopies&) = delete;
    WithoutCopies& operator=(const WithoutCopies&) = delete;

  private:
    const bool outer_;
};

// The numbers of a communicator's ranks in MPI_COMM_WORLD; MPI_UNDEFINED for ranks of another world.
std::vector<std::int32_t> ranks_in_world_of(mpi::Comm handle);

// The bond of a communicator. Returns: null if it has none; `valid` tells whether the handle is one at all.
Bond* find_bond(mpi::Comm handle, bool* valid = nullptr);
// Hangs a bond on a communicator. Returns: null if the library refuses.
Bond* attach(mpi::Comm handle, std::unique_ptr<Bond> bond);
// Gives MPI_COMM_WORLD its identity. Called in MPI_Init on all ranks. Requires: can_meet().
void bind_world();

// Called after a function that made a communicator from a parent, on all ranks of the parent, which thereby
// count its children alike. made: the communicator that it made on this rank; may be MPI_COMM_NULL.
void bind_child(mpi::Comm parent, mpi::Comm made);

}  // namespace coco::comm
