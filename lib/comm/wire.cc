// SPDX-License-Identifier: BSD-3-Clause
#include "comm/wire.h"

#include <sched.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "comm/mpi_table.h"

namespace coco::comm {
namespace {

// A message of MPI's has an int of bytes.
constexpr std::uint64_t kPieceBytes = 1 << 30;

struct Alive {
    std::mutex mutex;
    std::vector<Wire*> wires;
    bool no_more = false;
};
// Never destroyed: communicators may be freed after static destructors have run.
Alive& all_alive() {
    static Alive* instance = new Alive;
    return *instance;
}

// Calls start(offset, bytes) for each piece of a message.
template <class Start>
void in_pieces(std::uint64_t bytes, Start start) {
    for (std::uint64_t at = 0; at == 0 || at < bytes; at += kPieceBytes)
        start(at, static_cast<int>(std::min(kPieceBytes, bytes - at)));
}

}  // namespace

int Wire::alive() {
    Alive& a = all_alive();
    std::lock_guard lock(a.mutex);
    return a.no_more ? kMost : static_cast<int>(a.wires.size());
}

void Wire::have_no_more() {
    Alive& a = all_alive();
    std::lock_guard lock(a.mutex);
    if (!a.no_more)
        COCO_LOG(
            info,
            "MPI_Comm_idup was called: of communicators that are new, those over several nodes and those "
            "with neighbours are left to MPI");
    a.no_more = true;
}

std::unique_ptr<Wire> Wire::make(MPI_Comm parent) {
    // Not a duplicate: that would copy the program's attributes, and freeing it would run its delete
    // functions.
    MPI_Group group;
    MPI_Comm made = mpi().comm_null;
    mpi().Comm_group(parent, &group);
    // That there is none left is no error of the program's.
    MPI_Errhandler handler;
    mpi().Comm_get_errhandler(parent, &handler);
    mpi().Comm_set_errhandler(parent, mpi().errors_return);
    int rc = mpi().Comm_create(parent, group, &made);
    mpi().Comm_set_errhandler(parent, handler);
    mpi().Errhandler_free(&handler);
    mpi().Group_free(&group);
    if (rc != MPI_SUCCESS || made == mpi().comm_null) return nullptr;
    mpi().Comm_set_errhandler(made, mpi().errors_are_fatal);
    std::unique_ptr<Wire> wire(new Wire(made));
    Alive& a = all_alive();
    std::lock_guard lock(a.mutex);
    a.wires.push_back(wire.get());
    return wire;
}

namespace {

// Of the world; null: there is none.
MPI_Comm& world_comm() {
    static MPI_Comm comm = mpi().comm_null;
    return comm;
}

}  // namespace

bool Wire::open_world() {
    std::unique_ptr<Wire> wire = make(mpi().comm_world);
    if (wire != nullptr) world_comm() = std::exchange(wire->comm_, mpi().comm_null);
    return wire != nullptr;
}

std::unique_ptr<Wire> Wire::within_world(const std::vector<std::int32_t>& world_ranks, std::int32_t rank,
                                         std::vector<std::int32_t> numbers) {
    std::unique_ptr<Wire> wire(new Wire(world_comm()));
    wire->ranks_ = &world_ranks;
    wire->rank_ = rank;
    wire->numbers_ = std::move(numbers);
    return wire;
}

Wire::~Wire() {
    if (ranks_ != nullptr) return;
    Alive& a = all_alive();
    {
        std::lock_guard lock(a.mutex);
        std::erase(a.wires, this);
    }
    end();
}

void end_wires() {
    Alive& a = all_alive();
    std::lock_guard lock(a.mutex);
    for (Wire* wire : a.wires) wire->end();
    a.wires.clear();
    if (world_comm() != mpi().comm_null) mpi().Comm_free(&world_comm());
}

void Wire::end() {
    if (comm_ != mpi().comm_null) mpi().Comm_free(&comm_);
    comm_ = mpi().comm_null;
}

void Wire::start_send(std::int32_t peer, const std::byte* data, std::uint64_t bytes, int tag,
                      std::vector<MPI_Request>& into) {
    in_pieces(bytes, [&](std::uint64_t at, int piece_bytes) {
        mpi().Isend(data + at, piece_bytes, mpi().byte, there(peer), tag_of(rank_, tag), comm_,
                    &into.emplace_back());
        ++messages_sent_;
    });
    bytes_sent_ += bytes;
}

void Wire::start_receive(std::int32_t peer, std::byte* data, std::uint64_t bytes, int tag,
                         std::vector<MPI_Request>& into) {
    in_pieces(bytes, [&](std::uint64_t at, int piece_bytes) {
        mpi().Irecv(data + at, piece_bytes, mpi().byte, there(peer), tag_of(peer, tag), comm_,
                    &into.emplace_back());
    });
}

void Wire::send(std::int32_t peer, const std::byte* data, std::uint64_t bytes, int tag) {
    start_send(peer, data, bytes, tag, requests_);
    messages_.push_back({requests_.size(), peer, 0});
}

void Wire::receive(std::int32_t peer, std::byte* data, std::uint64_t bytes, int tag) {
    start_receive(peer, data, bytes, tag, requests_);
    messages_.push_back({requests_.size(), peer, 0});
}

// Whatever tag comes is taken: the peer's messages of earlier calls are through, and this call's come first.
void Wire::receive_marked(std::int32_t peer, std::byte* data, std::uint64_t bytes, int mark) {
    start_receive(peer, data, bytes, MPI_ANY_TAG, requests_);
    messages_.push_back({requests_.size(), peer, kMarkedTag + mark});
}

std::int32_t Wire::complete(std::size_t left, bool yields) {
    if (messages_.size() <= left) return kNobody;
    std::size_t count = messages_.size() - left, requests = messages_[count - 1].end;
    statuses_.resize(std::max(statuses_.size(), requests));
    wait(requests_.data(), requests, yields, statuses_.data());
    std::int32_t unlike = find_unlike(count);
    requests_.erase(requests_.begin(), requests_.begin() + static_cast<std::ptrdiff_t>(requests));
    messages_.erase(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(count));
    for (Message& message : messages_) message.end -= requests;
    return unlike;
}

std::int32_t Wire::find_unlike(std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
        const Message& message = messages_[i];
        if (message.tag != 0 && statuses_[message.end - 1].MPI_TAG != message.tag) return message.peer;
    }
    return kNobody;
}

// Not by MPI_Test nor MPI_Testall: MPICH's look at the network even when there is nothing to wait for, and
// who runs ahead of its receivers pays for that in every call. Here MPICH says how the request was before it
// looked: what it finds then is seen by asking again. A look for one request moves all.
bool Wire::is_through(MPI_Request request) {
    int done = 0;
    for (int look = 0; look < 2 && !done; ++look) mpi().Request_get_status(request, &done, MPI_STATUS_IGNORE);
    return done;
}

void Wire::wait(MPI_Request* requests, std::size_t count, bool yields, MPI_Status* statuses) {
    // MPICH's waiting never gives the CPU away.
    for (std::size_t i = 0; yields && i < count; ++i)
        while (!is_through(requests[i])) sched_yield();
    mpi().Waitall(static_cast<int>(count), requests, statuses != nullptr ? statuses : MPI_STATUSES_IGNORE);
}

}  // namespace coco::comm
