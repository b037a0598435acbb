// SPDX-License-Identifier: BSD-3-Clause
//
// alltoallv of one simulated rank, as lib/exec/nodes_sized.cc does it, which needs a heap that processes
// share and so cannot be compiled in. Modelled after it: scratch holds elements, so that copies to scratch
// move no data; a message brings a head, lengths, and its data if that is short, else the data follows in a
// second message; long blocks go straight to their receivers at the end. Elements are followed by name, and
// so is where each ends; their bytes are counted, not moved. Not modelled: staging, refusals.
#pragma once
#include <vector>

#include "view.h"

namespace simulate {

// These four as in lib/exec/nodes_sized.cc.
inline constexpr std::int64_t kStraightBytes = 16 * 1024;
inline constexpr std::int64_t kAlongBytes = 4096;
inline constexpr std::int64_t kHeadBytes = 32;
inline constexpr std::int64_t kLengthBytes = 4;

class SizedView : public ClockedView {
  public:
    // phases: as in the paper of sloav, a message of four bytes says how long the next one is, and blocks
    // that are to be sent on are copied to their elements' segments.
    SizedView(World& world, int self, const coco::schedule::Schedule& schedule, bool phases)
        : ClockedView(world, self), on_node_(shares_scratch(schedule)), phases_(phases) {}

    void copy(Place source, Place target) { put(target, element(source)); }

    void send(std::int32_t to, Place first, std::int32_t blocks) {
        Travel& travel = travels_.emplace_back(true, to, first, blocks);
        Elements packed;
        std::int64_t data_bytes = 0;
        for (std::int32_t i = 0; i < blocks; ++i) {
            packed.push_back(element(at(first, i)));
            data_bytes += pack(packed.back());
        }
        rank(to).coming[self_].push_back(std::move(packed));
        Parts parts = parts_of(blocks, data_bytes);
        start_send(to, any(), parts.first_bytes, 0, travel.head);
        if (parts.second_bytes != 0) start_send(to, any(), parts.second_bytes, 1, travel.rest);
    }
    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        Travel& travel = travels_.emplace_back(false, from, first, blocks);
        std::int64_t most = phases_ ? kPhaseBytes : head_bytes(blocks) + kAlongBytes;
        start_receive(from, any(), most, 0, travel.head);
    }
    void complete(std::int32_t left) {
        std::size_t end = travels_.size() - static_cast<std::size_t>(left);
        for (std::size_t i = through_; i < end; ++i) {
            await(&travels_[i].head, 1);
            if (!travels_[i].sends) fetch_rest(travels_[i]);
        }
        for (; through_ < end; ++through_) {
            Travel& travel = travels_[through_];
            if (travel.rest != MPI_REQUEST_NULL) await(&travel.rest, 1);
            if (!travel.sends) unpack(travel);
        }
    }

    // After the walk: long blocks, from rank to rank.
    void go_straight() {
        std::vector<MPI_Request> requests;
        if (world_.block_bytes <= kStraightBytes) return;
        for (std::int32_t i = 1; i < world_.ranks; ++i) {
            std::int32_t to = (self_ + i) % world_.ranks, from = (self_ - i + world_.ranks) % world_.ranks;
            pass_straight({from, self_}, requests);
            pass_straight({self_, to}, requests);
            if (requests.size() < kStraightWindow) continue;
            await(requests.data(), std::ssize(requests));
            requests.clear();
        }
        await(requests.data(), std::ssize(requests));
    }

  private:
    static constexpr std::size_t kStraightWindow = 32;
    static constexpr std::int64_t kPhaseBytes = 4;

    struct Travel {
        Travel(bool sends, std::int32_t peer, Place first, std::int32_t blocks)
            : sends(sends), peer(peer), first(first), blocks(blocks) {}
        bool sends;
        std::int32_t peer;
        Place first;
        std::int32_t blocks;
        Elements came = {};
        MPI_Request head = MPI_REQUEST_NULL, rest = MPI_REQUEST_NULL;
    };

    static bool shares_scratch(const coco::schedule::Schedule& schedule) {
        using coco::schedule::Act;
        return std::ranges::any_of(schedule.steps, [](const coco::schedule::Step& step) {
            return step.act == Act::raise && step.milestone == coco::schedule::kArrived;
        });
    }
    // Of a message; the second may be missing.
    struct Parts {
        std::int64_t first_bytes, second_bytes;
    };
    Parts parts_of(std::int32_t blocks, std::int64_t data_bytes) const {
        std::int64_t head = head_bytes(blocks);
        if (phases_) return {kPhaseBytes, head + data_bytes};
        return data_bytes <= kAlongBytes ? Parts{head + data_bytes, 0} : Parts{head, data_bytes};
    }
    static Place at(Place first, std::int32_t i) { return {first.owner, first.area, first.index + i}; }
    static std::int64_t head_bytes(std::int32_t blocks) { return kHeadBytes + blocks * kLengthBytes; }
    std::byte* any() { return world_.any.data(); }

    Element element(Place place) {
        auto index = static_cast<std::size_t>(place.index);
        if (place.area == coco::schedule::Area::scratch) return rank(place.owner).table[index];
        if (place.area == coco::schedule::Area::recv) return rank(self_).received[index];
        return {self_, place.index};
    }
    bool goes_straight(const Element& element) const { return world_.bytes_of(element) > kStraightBytes; }
    // What a mate reads in place is no message.
    bool is_by_message(const Element& element) const {
        return !on_node_ || world_.map.node[element.sender] != world_.map.node[element.receiver];
    }

    void put(Place target, const Element& element) {
        now_ += world_.costs.element_s;
        auto index = static_cast<std::size_t>(target.index);
        if (target.area == coco::schedule::Area::scratch) {
            rank(target.owner).table[index] = element;
            return;
        }
        rank(self_).received[index] = element;
        std::int64_t bytes = world_.bytes_of(element);
        if (bytes != 0 && !(goes_straight(element) && is_by_message(element))) charge_copy(bytes);
    }
    // Returns: the bytes that it adds to a message.
    std::int64_t pack(const Element& element) {
        now_ += world_.costs.element_s;
        std::int64_t bytes = goes_straight(element) ? 0 : world_.bytes_of(element);
        if (bytes != 0) charge_copy(bytes);
        return bytes;
    }
    void fetch_rest(Travel& travel) {
        auto& coming = rank(self_).coming[travel.peer];
        travel.came = std::move(coming.front());
        coming.pop_front();
        std::int64_t bytes = 0;
        for (const Element& e : travel.came) bytes += goes_straight(e) ? 0 : world_.bytes_of(e);
        std::int64_t second_bytes = parts_of(travel.blocks, bytes).second_bytes;
        if (second_bytes != 0) start_receive(travel.peer, any(), second_bytes, 1, travel.rest);
    }
    void unpack(const Travel& travel) {
        for (std::int32_t i = 0; i < travel.blocks; ++i) {
            const Element& e = travel.came[static_cast<std::size_t>(i)];
            if (phases_ && e.receiver != self_ && !goes_straight(e)) charge_copy(world_.bytes_of(e));
            put(at(travel.first, i), e);
        }
    }
    void pass_straight(Element element, std::vector<MPI_Request>& requests) {
        if (!goes_straight(element) || !is_by_message(element)) return;
        std::int64_t bytes = world_.bytes_of(element);
        if (element.receiver == self_)
            start_receive(element.sender, any(), bytes, 2, requests.emplace_back());
        else
            start_send(element.receiver, any(), bytes, 2, requests.emplace_back());
    }

    const bool on_node_;  // the ranks of a node share scratch in this schedule
    const bool phases_;
    std::vector<Travel> travels_;
    std::size_t through_ = 0;
};

}  // namespace simulate
