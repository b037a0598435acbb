// SPDX-License-Identifier: BSD-3-Clause
//
// alltoallv of one simulated rank, as lib/exec/nodes_sized.cc does it, which needs a heap that processes
// share and so cannot be compiled in. What that does with messages is compiled in: this is another port of
// messages/carrier.h. Modelled after it: scratch holds elements, so that copies to scratch move no data; long
// blocks go straight to their receivers at the end. Elements are followed by name, and so is where each ends;
// their bytes are counted, not moved. Not modelled: staging, refusals.
#pragma once
#include <vector>

#include "messages/carrier.h"
#include "messages/opening.h"
#include "view.h"

namespace simulate {

class SizedView : public ClockedView {
  public:
    // phases: as in the paper of sloav, a message of four bytes says how long the next one is, and blocks
    // that are to be sent on are copied to their elements' segments.
    SizedView(World& world, int self, const coco::schedule::Schedule& schedule, bool phases)
        : ClockedView(world, self),
          on_node_(shares_scratch(schedule)),
          phases_(phases),
          format_(phases ? kPhases : whole_format(world.ranks)) {}

    // How the messages of nodes_sized.cc look.
    static coco::messages::Format whole_format(std::int32_t ranks) {
        return coco::messages::opened_format(true, ranks);
    }

    void copy(Place source, Place target) { put(target, element(source)); }

    void send(std::int32_t to, Place first, std::int32_t blocks) {
        coco::messages::send_load(*this, loads_, to, first, blocks);
    }
    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        coco::messages::receive_load(*this, loads_, from, first, blocks);
    }
    void complete(std::int32_t left) {
        coco::messages::complete_loads(*this, loads_, static_cast<std::size_t>(left));
    }

    // As a port of messages/carrier.h.
    using Part = coco::messages::Part;
    struct Cargo {
        Elements elements;
        MPI_Request head = MPI_REQUEST_NULL, rest = MPI_REQUEST_NULL;

        MPI_Request& request(Part part) { return part == Part::head ? head : rest; }
    };
    using Load = coco::messages::Load<Cargo>;
    const coco::messages::Format& format() const { return format_; }
    std::uint64_t pack(Load& load) {
        Elements& elements = load.cargo.elements;
        for (std::int32_t i = 0; i < load.blocks; ++i) {
            elements.push_back(element(load.place(i)));
            charge_packing(elements.back());
        }
        return data_bytes(elements);
    }
    void start_send(Load& load, Part part, std::uint64_t bytes) {
        if (part == Part::head) rank(load.peer).coming[self_].push_back(std::move(load.cargo.elements));
        ClockedView::start_send(load.peer, any(), static_cast<std::int64_t>(bytes), tag_of(part),
                                load.cargo.request(part));
    }
    void start_receive(Load& load, Part part, std::uint64_t bytes) {
        ClockedView::start_receive(load.peer, any(), static_cast<std::int64_t>(bytes), tag_of(part),
                                   load.cargo.request(part));
    }
    std::uint64_t learn(Load& load) {
        auto& coming = rank(self_).coming[load.peer];
        load.cargo.elements = std::move(coming.front());
        coming.pop_front();
        return data_bytes(load.cargo.elements);
    }
    void complete(Load& load, Part part) { await(&load.cargo.request(part), 1); }
    void sent(Load&) {}
    void unpack(Load& load) {
        for (std::int32_t i = 0; i < load.blocks; ++i) {
            const Element& e = load.cargo.elements[static_cast<std::size_t>(i)];
            if (phases_ && e.receiver != self_ && !goes_straight(e)) charge_copy(world_.bytes_of(e));
            put(load.place(i), e);
        }
    }

    // After the walk: long blocks, from rank to rank.
    void go_straight() {
        std::vector<MPI_Request> requests;
        if (static_cast<std::uint64_t>(world_.block_bytes) <= coco::messages::straight_bytes(world_.ranks))
            return;
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
    // The first message is an opening of four bytes alone; lengths count as data.
    static constexpr coco::messages::Format kPhases{.opening_bytes = 4, .length_bytes = 0, .along_bytes = 0};
    static constexpr int kStraightTag = 2;

    static bool shares_scratch(const coco::schedule::Schedule& schedule) {
        using coco::schedule::Act;
        return std::ranges::any_of(schedule.steps, [](const coco::schedule::Step& step) {
            return step.act == Act::raise && step.milestone == coco::schedule::kArrived;
        });
    }
    static int tag_of(Part part) { return part == Part::head ? 0 : 1; }
    std::byte* any() { return world_.any.data(); }

    Element element(Place place) {
        auto index = static_cast<std::size_t>(place.index);
        if (place.area == coco::schedule::Area::scratch) return rank(place.owner).table[index];
        if (place.area == coco::schedule::Area::recv) return rank(self_).received[index];
        return {self_, place.index};
    }
    coco::messages::Item item_of(const Element& element) const {
        const auto bytes = static_cast<std::uint64_t>(world_.bytes_of(element));
        return {nullptr, bytes, bytes > coco::messages::straight_bytes(world_.ranks)};
    }
    bool goes_straight(const Element& element) const { return item_of(element).straight; }
    // An element that a mate reads in place is no message.
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
    void charge_packing(const Element& element) {
        now_ += world_.costs.element_s;
        const std::uint64_t bytes = item_of(element).travelling_bytes();
        if (bytes != 0) charge_copy(static_cast<std::int64_t>(bytes));
    }
    // The bytes that a message brings besides its head.
    std::uint64_t data_bytes(const Elements& elements) const {
        std::uint64_t bytes = 0;
        if (phases_)
            bytes += whole_format(world_.ranks).head_bytes(static_cast<std::int32_t>(elements.size()));
        for (const Element& e : elements) bytes += item_of(e).travelling_bytes();
        return bytes;
    }
    void pass_straight(Element element, std::vector<MPI_Request>& requests) {
        if (!goes_straight(element) || !is_by_message(element)) return;
        std::int64_t bytes = world_.bytes_of(element);
        if (element.receiver == self_)
            ClockedView::start_receive(element.sender, any(), bytes, kStraightTag, requests.emplace_back());
        else
            ClockedView::start_send(element.receiver, any(), bytes, kStraightTag, requests.emplace_back());
    }

    const bool on_node_;  // the ranks of a node share scratch in this schedule
    const bool phases_;
    const coco::messages::Format format_;
    coco::messages::Loads<Cargo> loads_;
};

}  // namespace simulate
