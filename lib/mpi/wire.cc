// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/wire.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/index.h"
#include "base/log.h"
#include "mpi/library.h"

namespace coco::mpi {
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

std::unique_ptr<Wire> Wire::make(Comm parent) {
    // Not a duplicate: that would copy the program's attributes, and freeing it would run its delete
    // functions.
    Group group;
    Comm made;
    lib().Comm_group(parent, &group);
    // That there is none left is no error of the program's.
    Errhandler handler;
    lib().Comm_get_errhandler(parent, &handler);
    lib().Comm_set_errhandler(parent, lib().errors_return);
    int rc = lib().Comm_create(parent, group, &made);
    lib().Comm_set_errhandler(parent, handler);
    lib().Errhandler_free(&handler);
    lib().Group_free(&group);
    if (rc != kSuccess || made == lib().comm_null || made == Comm{}) return nullptr;
    lib().Comm_set_errhandler(made, lib().errors_are_fatal);
    std::unique_ptr<Wire> wire(new Wire(made));
    Alive& a = all_alive();
    std::lock_guard lock(a.mutex);
    a.wires.push_back(wire.get());
    return wire;
}

namespace {

// The private communicator of the world; MPI_COMM_NULL if there is none.
Comm& world_comm() {
    static Comm comm = lib().comm_null;
    return comm;
}

}  // namespace

bool Wire::open_world() {
    std::unique_ptr<Wire> wire = make(lib().comm_world);
    if (wire != nullptr) world_comm() = std::exchange(wire->comm_, lib().comm_null);
    return wire != nullptr;
}

std::unique_ptr<Wire> Wire::within_world(const std::vector<std::int32_t>& world_ranks, std::int32_t rank,
                                         std::vector<std::int32_t> numbers) {
    COCO_CHECK(world_comm() != lib().comm_null, "a wire within the world goes by the wire of the world");
    COCO_CHECK(rank >= 0 && base::index(rank) < world_ranks.size(), "a rank with a wire is one of its ranks");
    COCO_CHECK(numbers.size() == world_ranks.size(), "each rank of a wire within the world has a number");
    for (std::int32_t number : numbers)
        COCO_CHECK(number >= 0 && number < kNumbersMost, "there are tags for each number of a wire");
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
    if (world_comm() != lib().comm_null) lib().Comm_free(&world_comm());
}

void Wire::end() {
    COCO_CHECK(messages_.empty(), "no message is under way when a wire ends");
    if (comm_ != lib().comm_null) lib().Comm_free(&comm_);
    comm_ = lib().comm_null;
}

void Wire::start_send(std::int32_t peer, const std::byte* data, std::uint64_t bytes, int tag,
                      Requests& into) {
    COCO_CHECK_DEAR(comm_ != lib().comm_null, "messages go by a wire that has not ended");
    COCO_CHECK_DEAR(bytes == 0 || data != nullptr, "a message with bytes has memory");
    in_pieces(bytes, [&](std::uint64_t at, int piece_bytes) {
        lib().Isend(data + at, piece_bytes, lib().byte, there(peer), tag_of(rank_, tag), comm_, into.add());
        ++messages_sent_;
    });
    bytes_sent_ += bytes;
}

void Wire::start_receive(std::int32_t peer, std::byte* data, std::uint64_t bytes, int tag, Requests& into) {
    COCO_CHECK_DEAR(comm_ != lib().comm_null, "messages go by a wire that has not ended");
    COCO_CHECK_DEAR(bytes == 0 || data != nullptr, "a message with bytes has memory");
    in_pieces(bytes, [&](std::uint64_t at, int piece_bytes) {
        lib().Irecv(data + at, piece_bytes, lib().byte, there(peer), tag_of(peer, tag), comm_, into.add());
    });
}

void Wire::send(std::int32_t peer, const std::byte* data, std::uint64_t bytes, int tag) {
    COCO_CHECK_DEAR(tag >= 0 && tag < kMarkedTag + kMarks, "a message has a tag");
    start_send(peer, data, bytes, tag, requests_);
    messages_.push_back({requests_.size(), peer, 0});
}

void Wire::receive(std::int32_t peer, std::byte* data, std::uint64_t bytes, int tag) {
    start_receive(peer, data, bytes, tag, requests_);
    messages_.push_back({requests_.size(), peer, 0});
}

// Whatever tag comes is taken: the peer's messages of earlier calls are through, and this call's come first.
void Wire::receive_marked(std::int32_t peer, std::byte* data, std::uint64_t bytes, int mark) {
    COCO_CHECK_DEAR(mark >= 0 && mark < kMarks, "a mark has a tag");
    COCO_CHECK_DEAR(ranks_ == nullptr, "a wire within the world has no tags for marks");
    start_receive(peer, data, bytes, lib().constants.any_tag, requests_);
    messages_.push_back({requests_.size(), peer, kMarkedTag + mark});
}

std::int32_t Wire::complete(std::size_t left, bool yields) {
    if (messages_.size() <= left) return kNobody;
    std::size_t count = messages_.size() - left, requests = messages_[count - 1].end;
    statuses_.resize(std::max(statuses_.size(), requests * lib().status.bytes));
    wait(requests_, requests, yields, statuses_.data());
    std::int32_t unlike = find_unlike(count);
    requests_.erase_first(requests);
    messages_.erase(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(count));
    for (Message& message : messages_) {
        COCO_CHECK_DEAR(message.end > requests, "messages are completed in the order of their start");
        message.end -= requests;
    }
    return unlike;
}

std::int32_t Wire::find_unlike(std::size_t count) const {
    COCO_CHECK_DEAR(count <= messages_.size(), "messages that are through were started");
    for (std::size_t i = 0; i < count; ++i) {
        const Message& message = messages_[i];
        if (message.tag != 0 && tag_of_status(message.end - 1) != message.tag) return message.peer;
    }
    return kNobody;
}

int Wire::tag_of_status(std::size_t index) const {
    COCO_CHECK_DEAR((index + 1) * lib().status.bytes <= statuses_.size(),
                    "a status was written for each request");
    const StatusLayout& layout = lib().status;
    int tag;
    std::memcpy(&tag, statuses_.data() + index * layout.bytes + layout.tag_at, sizeof tag);
    return tag;
}

// Not by MPI_Test nor MPI_Testall: MPICH's look at the network even when there is nothing to wait for, and a
// rank that runs ahead of its receivers pays for that in every call. Here MPICH says how the request was
// before it looked: what it finds then is seen by asking again. A look for one request moves all.
bool Wire::is_through(Request request) {
    int done = 0;
    for (int look = 0; look < 2 && !done; ++look)
        lib().Request_get_status(request, &done, lib().constants.status_ignore);
    return done;
}

void Wire::wait(Requests& requests, std::size_t count, bool yields, void* statuses) {
    COCO_CHECK_DEAR(count <= requests.size(), "requests that are waited for were started");
    // MPICH's waiting never gives the CPU away.
    for (std::size_t i = 0; yields && i < count; ++i)
        while (!is_through(requests[i])) sched_yield();
    lib().Waitall(static_cast<int>(count), requests.data(),
                  statuses != nullptr ? statuses : lib().constants.statuses_ignore);
}

}  // namespace coco::mpi
