// SPDX-License-Identifier: BSD-3-Clause
//
// Messages between the ranks of a communicator of ours: a private communicator of the same ranks, and what is
// in flight on it. Used by exec for the send, receive and complete steps of a schedule. Thread safety: none;
// it belongs to a communicator, and MPI allows one collective at a time there. Fails: errors end the job, as
// MPI_ERRORS_ARE_FATAL says; the other ranks would wait for ever.
#pragma once
#include "base/check.h"
#include "base/index.h"
#include "mpi/handles.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace coco::mpi {

class Wire {
  public:
    // How many private communicators a process may have: MPICH has about 2,000 communicators in all.
    static constexpr int kMost = 64;
    // How many this process has now; kMost where it may have no more.
    static int alive();
    // Open MPI makes one communicator at a time in a process: while it makes one for the program, and the
    // program does not wait for it (MPI_Comm_idup), one of ours would wait for ranks that wait for us. Nobody
    // hears when it is done, so there are no more from then on.
    static void have_no_more();

    // Collective over the communicator. Returns: null if MPI has no communicator left.
    static std::unique_ptr<Wire> make(Comm parent);
    // Makes the private communicator of the world, collectively, in MPI_Init. Returns: whether there is one.
    static bool open_world();
    // A wire that needs no communicator of its own, as it goes by the world's. Its messages are told from all
    // others by their tags. world_ranks: by rank. numbers: by rank, unlike those of all other such wires on
    // which that rank sends at the same time. Requires: open_world(); numbers below kNumbersMost; tags below
    // kTagsEach.
    static std::unique_ptr<Wire> within_world(const std::vector<std::int32_t>& world_ranks, std::int32_t rank,
                                              std::vector<std::int32_t> numbers);
    static constexpr int kTagsEach = 4, kNumbersMost = 8'000;  // every MPI library has 32,767 tags
    ~Wire();
    Wire(const Wire&) = delete;
    Wire& operator=(const Wire&) = delete;

    // Start one message. Between two ranks messages arrive in the order in which they were sent; the receiver
    // asks for as many bytes as are sent.
    // tag: messages match within their tag. A message up to 1 GiB may be shorter than its receiver asks for.
    static constexpr int kFirstTag = 0, kSecondTag = 1, kThirdTag = 2, kBundleTag = 3, kMarkedTag = 4;
    void send(std::int32_t peer, const std::byte* data, std::uint64_t bytes, int tag = kFirstTag);
    void receive(std::int32_t peer, std::byte* data, std::uint64_t bytes, int tag = kFirstTag);
    // Messages that bear a mark, which their receiver compares with its own: what both should think alike of
    // a call. Requires: 0 <= mark < kMarks.
    static constexpr int kMarks = 32'000;
    void send_marked(std::int32_t peer, const std::byte* data, std::uint64_t bytes, int mark) {
        COCO_CHECK_DEAR(mark >= 0 && mark < kMarks, "a mark has a tag");
        COCO_CHECK_DEAR(ranks_ == nullptr, "a wire within the world has no tags for marks");
        send(peer, data, bytes, kMarkedTag + mark);
    }
    void receive_marked(std::int32_t peer, std::byte* data, std::uint64_t bytes, int mark);
    // The same, for messages that their starter waits for itself: their requests are added to `into`.
    void start_send(std::int32_t peer, const std::byte* data, std::uint64_t bytes, int tag, Requests& into);
    void start_receive(std::int32_t peer, std::byte* data, std::uint64_t bytes, int tag, Requests& into);
    // Waits for the first `count` requests, which are null then. statuses: room for that many, or null.
    static void wait(Requests& requests, std::size_t count, bool yields, void* statuses = nullptr);
    // Waits for all messages but the `left` last started. `yields`: give the CPU away while waiting. Returns:
    // kNobody, or the rank that sent one that bears another mark than was expected.
    static constexpr std::int32_t kNobody = -1;
    std::int32_t complete(std::size_t left, bool yields);

    // Sent since the communicator was set up, for the report.
    std::uint64_t messages_sent() const { return messages_sent_; }
    std::uint64_t bytes_sent() const { return bytes_sent_; }

  private:
    explicit Wire(Comm comm) : comm_(comm) {}
    // Where a peer is on comm_, and which tags are for what it sends.
    int there(std::int32_t peer) const {
        COCO_CHECK_DEAR(peer >= 0 && (ranks_ == nullptr || base::index(peer) < ranks_->size()),
                        "a peer of a wire is one of its ranks");
        return ranks_ != nullptr ? (*ranks_)[base::index(peer)] : peer;
    }
    int tag_of(std::int32_t sender, int tag) const {
        COCO_CHECK_DEAR(ranks_ == nullptr || (tag >= 0 && tag < kTagsEach),
                        "a wire within the world has a few tags for each of its ranks");
        return ranks_ != nullptr ? numbers_[base::index(sender)] * kTagsEach + tag : tag;
    }
    friend void end_wires();
    void end();
    // Looks, and moves what can be moved.
    static bool is_through(Request request);

    struct Message {
        std::size_t end;         // how many requests up to its last
        std::int32_t peer, tag;  // tag: the one that it must have if it is received and marked; else 0
    };
    // The sender of one of the first `count` messages, now in statuses_, that has another mark; or kNobody.
    std::int32_t find_unlike(std::size_t count) const;

    Comm comm_;
    const std::vector<std::int32_t>* ranks_ = nullptr;  // those of within_world(), else null
    std::vector<std::int32_t> numbers_;
    std::int32_t rank_ = 0;
    int tag_of_status(std::size_t index) const;

    Requests requests_;              // in the order of their start
    std::vector<Message> messages_;  // in flight
    std::vector<std::byte> statuses_;
    std::uint64_t messages_sent_ = 0;
    std::uint64_t bytes_sent_ = 0;
};

// Frees all private communicators, before MPI_Finalize. Requires: no collective runs.
void end_wires();

}  // namespace coco::mpi
