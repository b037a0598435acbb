// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges over several nodes whose blocks have sizes of their own: alltoallv, alltoallw, allgatherv.
//
// Source: Xu, Venkata, Graham, Wang, Liu, Yu, SLOAVx: Scalable LOgarithmic AlltoallV Algorithm for
// Hierarchical Multicore Systems, CCGrid 2013, sections III and IV. As there, scratch is a table of elements,
// each where a block lies and how long it is, so that copies to scratch move no data; a message brings its
// elements' lengths and data, its size told before. Here the telling is one message with lengths and data as
// long as that is small, and a second only for what does not fit; large blocks do not go round but straight
// to their receiver, which the lengths announce; what a node's ranks owe others is read where it lies on the
// shared heap, instead of being gathered along a tree.
//
// No rank knows another's sizes, so what all must know travels along: that a rank cannot take part, and the
// largest block. Every exchange brings a block, if an empty one, from each rank to each other, and what is
// sent on is sent after what came was read: so in the end all have heard of all.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/of_thread.h"
#include "exec/copy_block.h"
#include "exec/exchange.h"
#include "exec/scratch.h"
#include "exec/walk.h"
#include "heap/heap.h"
#include "heap/segment.h"

namespace coco::exec {
namespace {

using schedule::Area;
using schedule::Milestone;
using schedule::Place;

// Longer blocks of personal exchanges go straight to their receivers.
constexpr std::uint64_t kStraightBytes = 16 * 1024;
// Data that a message brings along with the lengths.
constexpr std::uint64_t kAlongBytes = 4096;
// Up to here a rank copies out what its mates read, so as not to wait for them.
constexpr std::uint64_t kCopyOutBytes = 32 * 1024;
constexpr std::size_t kStraightWindow = 32;

// Where a block is and how long. Lies in scratch, is written and read by all ranks of the node.
struct Element {
    std::uint64_t at;  // offset in the owner's segment
    std::uint64_t bytes;
    std::int32_t owner;
    std::int32_t straight;  // it is not there: it comes straight from its sender
    std::uint64_t unused;
};
static_assert(sizeof(Element) == 32);

// What all ranks have to hear. Opens a rank's scratch and each message.
struct News {
    std::uint64_t refused = 0;  // some rank cannot take part
    std::uint64_t largest_bytes = 0;

    void hear(const News& other) {
        refused |= other.refused;
        largest_bytes = std::max(largest_bytes, other.largest_bytes);
    }
};
struct Board {
    std::atomic<std::uint64_t> refused, largest_bytes;  // the owner writes while mates read
    std::uint64_t unused[2];
};
static_assert(sizeof(Board) == sizeof(Element));

struct Head {
    News news;
    std::uint64_t data_bytes;
    std::uint32_t blocks;
    std::uint32_t signature;
};
// What a length of 32 bits can tell: of blocks as long or longer.
constexpr std::uint64_t kLongestTold = UINT32_MAX;

// A message under way. Its rest, data that did not go along, is received once its head is known: so a send of
// a rest may be waited for only after the heads.
struct Travel {
    bool sends;
    std::int32_t peer;
    Place first;
    std::int32_t blocks;
    std::byte* memory;   // head, lengths, and data if that went along
    std::byte* data;     // null: it went along
    std::size_t parcel;  // a send's memory
    mpi::Requests head = {}, rest = {};
};

struct Travels {
    std::vector<Travel> all;  // in the order of their start
    std::size_t through, used;
};

class SizedNodesView : public ExchangeView {
  public:
    static constexpr bool kRows = false;

    SizedNodesView(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                   const schedule::Schedule& schedule)
        : ExchangeView(comm, call.common, algorithm),
          call_(call),
          personal_(base::is_personal(call.common.collective)),
          on_node_(std::ranges::any_of(schedule.steps,
                                       [](const schedule::Step& step) {
                                           return step.act == schedule::Act::raise &&
                                                  step.milestone == schedule::kArrived;
                                       })),
          schedule_(schedule) {}

    // Requires: has_scratch().
    void prepare() {
        comm_.rows.resize(static_cast<std::size_t>(schedule::kAreas) * static_cast<std::size_t>(comm_.ranks));
        received_.resize(static_cast<std::size_t>(comm_.ranks));
        plan();
        std::byte* scratch = take_scratch(comm_);
        board_ = new (scratch) Board{};
        for (std::int32_t mate : comm_.mates) row(Area::scratch, mate).base = nullptr;
        row(Area::scratch, comm_.rank).base = scratch + sizeof(Board);
        if (send_.where == Where::ring) stage();
        lay_out(recv_, call_.local.recv, recv_.base, 0, comm_.recv_blocks);
        fill_side(recv_, call_.local.recv, 0);  // what is not received must stay as it is
        if (news_.refused) return;
        lay_out(send_, call_.local.send, send_.base, 0, comm_.send_blocks);
        fill_side(send_, call_.local.send, 0);
        for (const channel::BlockAt& block : send_.blocks)
            news_.largest_bytes = std::max(news_.largest_bytes, block.bytes);
    }

    void copy(Place source, Place target) { put(target, element(source)); }

    void wait(std::int32_t peer, Milestone milestone) {
        if (milestone != schedule::kArrived) channel_.wait_milestone(peer, milestone);
        if (row(Area::scratch, peer).base == nullptr) meet(peer);
        const Board& board = *reinterpret_cast<const Board*>(row(Area::scratch, peer).base - sizeof(Board));
        news_.hear({board.refused.load(std::memory_order_relaxed),
                    board.largest_bytes.load(std::memory_order_relaxed)});
    }

    void raise(Milestone milestone) {
        board_->refused.store(news_.refused, std::memory_order_relaxed);
        board_->largest_bytes.store(news_.largest_bytes, std::memory_order_relaxed);
        if (milestone != schedule::kArrived) return channel_.raise(milestone);
        channel::Slot& slot = open_slot();
        slot.publish = channel::Publish::staged;
        slot.scratch_at = channel_.offset_of(row(Area::scratch, comm_.rank).base);
        publish(slot);
    }

    void send(std::int32_t to, Place first, std::int32_t blocks) {
        std::uint64_t data_bytes = 0;
        for (std::int32_t i = 0; i < blocks; ++i) data_bytes += travelling_bytes(element(at(first, i)));
        std::uint64_t head_bytes = head_bytes_of(blocks);
        std::size_t parcel = take_parcel(head_bytes + data_bytes);
        std::byte* memory = comm_.parcels[parcel].room.memory;
        *reinterpret_cast<Head*>(memory) = {news_, data_bytes, static_cast<std::uint32_t>(blocks),
                                            signature_};
        pack(first, blocks, memory);
        bool along = data_bytes <= kAlongBytes;
        Travel& travel = set_out(true, to, first, blocks, memory);
        travel.parcel = parcel;
        comm_.wire->start_send(to, memory, along ? head_bytes + data_bytes : head_bytes, mpi::Wire::kFirstTag,
                               travel.head);
        if (!along)
            comm_.wire->start_send(to, memory + head_bytes, data_bytes, mpi::Wire::kSecondTag, travel.rest);
    }

    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        std::uint64_t most = head_bytes_of(blocks) + kAlongBytes;
        Travel& travel = set_out(false, from, first, blocks, room_for_coming(from, most));
        comm_.wire->start_receive(from, travel.memory, most, mpi::Wire::kFirstTag, travel.head);
    }

    void complete(std::int32_t left) {
        std::size_t through = travels_.used - static_cast<std::size_t>(left);
        // A rest is asked for as soon as its head is there: its sender may not start what other heads, later
        // ones, depend on before it is rid of the rest.
        for (std::size_t i = travels_.through; i < through; ++i) {
            comm_.complete(travels_.all[i].head);
            if (!travels_.all[i].sends) fetch_rest(travels_.all[i]);
        }
        for (; travels_.through < through; ++travels_.through) {
            Travel& travel = travels_.all[travels_.through];
            comm_.complete(travel.rest);
            if (travel.sends)
                comm_.parcels[travel.parcel].epoch = 0;
            else
                unpack(travel);
        }
    }

    // After the walk. Returns: why all ranks hand back, or none.
    stats::Reason finish() {
        if (!news_.refused) go_straight();
        if (exposed_ && !send_.is_guarded())
            for (std::int32_t mate : comm_.mates) channel_.wait_milestone(mate, schedule::kDone);
        if (personal_) tell_next_call();
        if (news_.refused) return refusal_ != stats::Reason::none ? refusal_ : stats::Reason::peer;
        empty_side(recv_, call_.local.recv, 0);
        return stats::Reason::none;
    }
    bool staged() const { return send_.where != Where::user || recv_.where != Where::user; }
    bool truncated() const { return truncated_; }

  private:
    // All ranks know both. Who refused is likely to do so again: the next calls are for MPI, as with blocks
    // larger than any rule asks for.
    void tell_next_call() {
        constexpr std::uint64_t kBeyondRules = std::uint64_t{1} << 62;
        comm_.largest_block_bytes = news_.refused ? kBeyondRules : news_.largest_bytes;
        comm_.left_to_mpi = 0;
    }

    void meet(std::int32_t peer) {
        channel_.wait_arrived(peer);
        check_signature(comm_, peer, signature_);
        row(Area::scratch, peer).base = channel_.at(peer, channel_.slot_of(peer).scratch_at);
    }

    static Place at(Place first, std::int32_t i) { return {first.owner, first.area, first.index + i}; }

    void plan() {
        exposed_ = on_node_ && !comm_.mates.empty();
        std::uint64_t total = call_.local.send.total_bytes;
        send_ =
            plan_side(comm_, call_.local.send,
                      {.exposed = exposed_,
                       .must_copy = (common_.in_place && personal_) || (exposed_ && total <= kCopyOutBytes),
                       .if_private = stats::Reason::send_private,
                       .block_bytes = 0,
                       .bytes = total},
                      0);
        // In place, the user's blocks are needed until it is known that nobody refuses.
        recv_ = plan_side(comm_, call_.local.recv,
                          {.exposed = false,
                           .must_copy = common_.in_place,
                           .if_private = stats::Reason::none,
                           .block_bytes = 0,
                           .bytes = call_.local.recv.total_bytes},
                          1);
        refusal_ = send_.refusal;
        if (refusal_ == stats::Reason::none && exposed_ && !has_inbox())
            refusal_ = stats::Reason::no_shared_heap;
        news_.refused = refusal_ != stats::Reason::none;
    }

    // What comes for mates has to lie on the shared heap, however much of it there may be. Seen to before the
    // first step: later there is no way back. The inbox has two halves, as scratch has.
    bool has_inbox() {
        std::uint64_t most = 0;
        for (const schedule::Step& step : schedule_.steps) {
            if (step.act != schedule::Act::receive) continue;
            auto blocks = static_cast<std::uint64_t>(step.count);
            most += head_bytes_of(step.count) + kAlongBytes + 2 * base::kCacheLineBytes;
            if (personal_) most += blocks * kStraightBytes;
        }
        if (most != 0 && !personal_) most += call_.local.recv.total_bytes;
        most = base::round_up(most, base::kCacheLineBytes);
        if (most <= inbox_half_bytes()) return true;
        std::uint64_t bytes = std::max<std::uint64_t>(2 * most, heap::kSurelyShared);
        auto* memory = static_cast<std::byte*>(heap::allocate_aligned(64, bytes));
        if (memory == nullptr || !heap::is_shared(memory, bytes)) {
            heap::release(memory);
            return false;
        }
        channel_.wait_all_done(channel_.epoch() - 1);  // mates may still read the old one
        heap::release(comm_.inbox.memory);
        comm_.inbox = {memory, bytes};
        return true;
    }

    void stage() {
        send_.base =
            channel_.stage_bytes(base::round_up(call_.local.send.total_bytes, base::kCacheLineBytes));
    }

    Element* table(std::int32_t owner) { return reinterpret_cast<Element*>(row(Area::scratch, owner).base); }
    Element own(const std::byte* data, std::uint64_t bytes) const {
        return {channel_.offset_of(data), bytes, comm_.rank, 0, 0};
    }

    Element element(Place place) {
        if (place.area == Area::scratch) return table(place.owner)[place.index];
        if (place.area == Area::recv) return received_[static_cast<std::size_t>(place.index)];
        if (news_.refused && refusal_ != stats::Reason::none) return own(nullptr, 0);
        const channel::BlockAt& block = send_.blocks[static_cast<std::size_t>(place.index)];
        return own(base::displaced(send_.base, block.displacement_bytes), block.bytes);
    }

    void put(Place target, const Element& element) {
        if (target.area == Area::scratch) {
            table(target.owner)[target.index] = element;
            return;
        }
        received_[static_cast<std::size_t>(target.index)] = element;
        if (news_.refused) return;
        if (element.straight != 0) return;
        const channel::BlockAt& room = recv_.blocks[static_cast<std::size_t>(target.index)];
        truncated_ |= element.bytes > room.bytes;
        const std::byte* source = channel_.at(element.owner, element.at);
        std::byte* to = base::displaced(recv_.base, room.displacement_bytes);
        std::uint64_t bytes = std::min(element.bytes, room.bytes);
        if (bytes != 0 && source != to) copy_block(to, source, bytes);
    }

    bool goes_straight(const Element& element) const { return personal_ && element.bytes > kStraightBytes; }
    std::uint64_t travelling_bytes(const Element& element) const {
        return goes_straight(element) ? 0 : element.bytes;
    }

    // Lengths have 32 bits in personal exchanges, of which there are many, else 64.
    std::uint64_t head_bytes_of(std::int32_t blocks) const {
        return sizeof(Head) + base::round_up(static_cast<std::uint64_t>(blocks) * (personal_ ? 4 : 8),
                                             sizeof(std::uint64_t));
    }
    void write_length(std::byte* head, std::int32_t i, const Element& element) const {
        std::byte* lengths = head + sizeof(Head);
        std::uint64_t bytes = element.bytes;
        auto small = static_cast<std::uint32_t>(std::min(bytes, kLongestTold));
        if (personal_)
            std::memcpy(lengths + 4 * static_cast<std::ptrdiff_t>(i), &small, 4);
        else
            std::memcpy(lengths + 8 * static_cast<std::ptrdiff_t>(i), &bytes, 8);
    }
    std::uint64_t read_length(const std::byte* head, std::int32_t i) const {
        const std::byte* lengths = head + sizeof(Head);
        std::uint32_t small = 0;
        std::uint64_t bytes = 0;
        if (personal_)
            std::memcpy(&small, lengths + 4 * static_cast<std::ptrdiff_t>(i), 4);
        else
            std::memcpy(&bytes, lengths + 8 * static_cast<std::ptrdiff_t>(i), 8);
        return personal_ ? small : bytes;
    }

    void pack(Place first, std::int32_t blocks, std::byte* memory) {
        std::byte* data = memory + head_bytes_of(blocks);
        for (std::int32_t i = 0; i < blocks; ++i) {
            const Element e = element(at(first, i));
            write_length(memory, i, e);
            std::uint64_t bytes = travelling_bytes(e);
            if (bytes != 0) copy_block(data, channel_.at(e.owner, e.at), bytes);
            data += bytes;
        }
    }

    Travel& set_out(bool sends, std::int32_t peer, Place first, std::int32_t blocks, std::byte* memory) {
        if (travels_.used == travels_.all.size()) travels_.all.emplace_back();
        Travel& travel = travels_.all[travels_.used++];
        travel.sends = sends;
        travel.peer = peer;
        travel.first = first;
        travel.blocks = blocks;
        travel.memory = memory;
        travel.data = nullptr;
        return travel;
    }

    // Starts to receive what did not come along.
    void fetch_rest(Travel& travel) {
        const Head& head = *reinterpret_cast<const Head*>(travel.memory);
        if (head.signature != signature_ || head.blocks != static_cast<std::uint32_t>(travel.blocks))
            stop_unequal(comm_, travel.peer);
        if (head.data_bytes <= kAlongBytes) return;
        std::uint64_t bytes = head.data_bytes;
        travel.data = room_for_coming(travel.peer, bytes);
        comm_.wire->start_receive(travel.peer, travel.data, bytes, mpi::Wire::kSecondTag, travel.rest);
    }

    void unpack(const Travel& travel) {
        const std::byte* head = travel.memory;
        news_.hear(reinterpret_cast<const Head*>(head)->news);
        const std::byte* data = travel.data != nullptr ? travel.data : head + head_bytes_of(travel.blocks);
        for (std::int32_t i = 0; i < travel.blocks; ++i) {
            Element e = own(data, read_length(head, i));
            e.straight = goes_straight(e);
            put(at(travel.first, i), e);
            data += travelling_bytes(e);
        }
    }

    // Memory for a message; stays ours until the call is over. shared: on the shared heap, if any is to be
    // had there. One that was made while the heap was full may lie elsewhere.
    std::size_t take_parcel(std::uint64_t bytes, bool shared = false) {
        auto& parcels = comm_.parcels;
        for (std::size_t i = 0; i < parcels.size(); ++i) {
            const comm::Comm::Parcel& parcel = parcels[i];
            if (parcel.room.bytes < bytes || parcel.epoch >= channel_.epoch()) continue;
            if (!shared || heap::is_shared(parcel.room.memory, bytes)) return use(i);
        }
        std::uint64_t room_bytes = base::round_up(bytes + bytes / 4, heap::kSurelyShared);
        auto* memory = static_cast<std::byte*>(heap::allocate_aligned(64, room_bytes));
        if (memory == nullptr) stop_without_memory(bytes);
        parcels.push_back({{memory, room_bytes}, 0});
        return use(parcels.size() - 1);
    }
    // Memory for what comes: of the inbox where mates read it.
    std::byte* room_for_coming(std::int32_t from, std::uint64_t bytes) {
        bool private_will_do = !exposed_ || refusal_ != stats::Reason::none;  // mates know, and do not look
        if (private_will_do) return comm_.parcels[take_parcel(bytes)].room.memory;
        std::uint64_t begin = inbox_taken_;
        inbox_taken_ += base::round_up(bytes, base::kCacheLineBytes);
        if (inbox_taken_ > inbox_half_bytes()) return room_for_surplus(from, bytes);
        return comm_.inbox.memory + channel_.epoch() % 2 * inbox_half_bytes() + begin;
    }
    // More comes than this rank has room for itself, in a gather that MPI would call wrong: its mates may
    // have the room.
    std::byte* room_for_surplus(std::int32_t from, std::uint64_t bytes) {
        comm::Comm::Parcel& parcel = comm_.parcels[take_parcel(bytes, true)];
        if (!heap::is_shared(parcel.room.memory, bytes)) stop_unequal(comm_, from);
        parcel.epoch = channel_.epoch() + 1;  // mates may read it as long as a half of the inbox
        return parcel.room.memory;
    }
    std::uint64_t inbox_half_bytes() const { return comm_.inbox.bytes / 2; }
    std::size_t use(std::size_t parcel) {
        comm_.parcels[parcel].epoch = channel_.epoch();
        return parcel;
    }

    // Of a block that was received elsewhere, what there is room for.
    struct Cut {
        std::byte *to, *from;
        std::uint64_t bytes;
    };

    // Long blocks, from rank to rank; all go through the distances in one order.
    void go_straight() {
        if (!personal_) return;
        std::vector<Cut> cuts;
        for (std::int32_t i = 1; i < comm_.ranks; ++i) {
            std::int32_t to = (comm_.rank + i) % comm_.ranks;
            std::int32_t sender = (comm_.rank - i + comm_.ranks) % comm_.ranks;
            if (received_[static_cast<std::size_t>(sender)].straight != 0) receive_straight(sender, cuts);
            if (is_by_message(to)) send_straight(to);
            comm_.complete(kStraightWindow);
        }
        comm_.complete(0);
        for (const Cut& cut : cuts) copy_block(cut.to, cut.from, cut.bytes);
    }
    bool is_by_message(std::int32_t to) const {
        return !on_node_ || comm_.map.node[to] != comm_.map.node[comm_.rank];
    }
    void send_straight(std::int32_t to) {
        const channel::BlockAt& block = send_.blocks[static_cast<std::size_t>(to)];
        if (block.bytes > kStraightBytes)
            comm_.wire->send(to, send_.base + block.displacement_bytes, block.bytes, mpi::Wire::kThirdTag);
    }
    // As much is asked for as is sent, wherever that fits: the MPI library must not see the program's error.
    void receive_straight(std::int32_t from, std::vector<Cut>& cuts) {
        const channel::BlockAt& room = recv_.blocks[static_cast<std::size_t>(from)];
        std::byte* to = base::displaced(recv_.base, room.displacement_bytes);
        std::uint64_t told = received_[static_cast<std::size_t>(from)].bytes;
        std::uint64_t bytes = told < kLongestTold ? told : std::max(room.bytes, told);
        if (room.bytes < bytes) {
            if (told == kLongestTold) stop_unequal(comm_, from);  // nobody knows how much comes
            truncated_ = true;
            cuts.push_back({to, comm_.parcels[take_parcel(bytes)].room.memory, room.bytes});
            to = cuts.back().from;
        }
        comm_.wire->receive(from, to, bytes, mpi::Wire::kThirdTag);
    }

    const Call& call_;
    const bool personal_;
    const bool on_node_;  // the ranks of a node share scratch in this schedule
    const schedule::Schedule& schedule_;
    bool exposed_ = false, truncated_ = false;
    std::uint64_t inbox_taken_ = 0;
    stats::Reason refusal_ = stats::Reason::none;  // this rank's own
    News news_;
    Board* board_ = nullptr;
    Side send_, recv_;
    std::vector<Element>& received_ = received();  // by sender
    Travels& travels_ = travels();

    // Kept by the thread, so that calls allocate nothing once they have grown.
    static std::vector<Element>& received() {
        return base::of_thread<std::vector<Element>, SizedNodesView>();
    }
    static Travels& travels() {
        auto& kept = base::of_thread<Travels, SizedNodesView>();
        kept.through = kept.used = 0;
        return kept;
    }
};

}  // namespace

Outcome run_sized_over_nodes(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                             const algorithms::Parameters& parameters) {
    comm::Comm::Kept& kept =
        comm.kept_for({&algorithm, base::exchange_of(call.common.collective), 0, 1, parameters});
    // A board, and an element for each block.
    if (!has_scratch(comm, kept.sized_fit, kept.schedule->scratch_blocks + 1, sizeof(Element))) {
        comm.channel.raise(schedule::kDone);
        return {.reason = stats::Reason::no_shared_heap};
    }
    SizedNodesView view(comm, call, algorithm, *kept.schedule);
    view.prepare();
    walk(*kept.schedule, view);
    stats::Reason reason = view.finish();
    return {.reason = reason, .staged = view.staged(), .truncated = view.truncated(), .ran = &algorithm};
}

}  // namespace coco::exec
