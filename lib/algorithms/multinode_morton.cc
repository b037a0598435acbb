// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     Li, Zhang, Hoefler 2018, section 2.5 (MN-CO). The paper stops at powers of two. The balanced
//             recursion gives compact shares for any P, whose messages have unequal lengths.
// Idea:       The Morton curve over the matrix of all bundles (a row for each receiver, a column for each
//             sender) is cut in equal shares. A participant fetches the bundles of its share, from each
//             sender in one message, and sends them on, to each receiver in one message: two rounds of
//             about sqrt(P) messages at once. In an allgather a participant is not sent again what it has
//             fetched for its share.
// Needs:      nothing: any ranks, any nodes
// Steps:      a message to each share from each sender in it, and from it to each receiver: per rank about
//             2 sqrt(P) (odd powers of two: sqrt(2 P) and sqrt(P / 2)) in 2 rounds
// Bytes:      alltoall per rank up to 2 P blocks sent, P copied: of each pair of ranks one if either of
//             them has the bundle in its share, else two; allgather P - 1 received
// Scratch:    alltoall per rank up to 3 P blocks; allgather up to 2 P
// Good for:   small blocks, on networks that carry many messages of a rank at once
#include <algorithm>
#include <map>
#include <set>

#include "algorithms/exchange.h"
#include "base/check.h"
#include "base/index.h"
#include "schedule/order.h"
#include "topology/share.h"

namespace coco::algorithms {
namespace {

using schedule::Cell;
using schedule::Place;

using Numbers = std::vector<std::int32_t>;      // numbers of participants, ascending
using Lists = std::map<std::int32_t, Numbers>;  // by participant

class Curve {
  public:
    explicit Curve(std::int32_t participants) : matrix_{participants, participants} {}

    std::int32_t owner_of(std::int32_t receiver, std::int32_t sender) const {
        return base::number(topology::part_of(matrix_.cells(), matrix_.rows,
                                              schedule::morton_position(matrix_, {receiver, sender})));
    }
    // The bundles in the share of `owner`, without those from a participant to itself.
    std::vector<Cell> share_of(std::int32_t owner) const {
        auto share = topology::share_of(matrix_.cells(), matrix_.rows, owner);
        auto cells = schedule::morton_range(matrix_, share.first, share.count);
        std::erase_if(cells, [](Cell cell) { return cell.row == cell.column; });
        return cells;
    }

  private:
    schedule::Matrix matrix_;
};

void sort_all(Lists& lists) {
    for (auto& [participant, list] : lists) std::ranges::sort(list);
}

// The bundles of one message, each with the place where it lies or shall lie.
struct Bundles {
    std::vector<Place> at;
    Numbers blocks;

    void add(Place place, std::int32_t count) {
        COCO_CHECK(count > 0, "a bundle has blocks");
        at.push_back(place);
        blocks.push_back(count);
    }
    std::int32_t total() const {
        std::int32_t sum = 0;
        for (std::int32_t count : blocks) sum += count;
        return sum;
    }
    bool lies_together() const {
        for (std::size_t i = 1; i < at.size(); ++i)
            if (at[i] != behind(at[i - 1], blocks[i - 1])) return false;
        return true;
    }
    void lay(Place first) {
        for (std::size_t i = 0; i < at.size(); ++i) {
            at[i] = first;
            first = behind(first, blocks[i]);
        }
    }
};

void send(Courier& courier, std::int32_t to, const Bundles& load) {
    COCO_CHECK(!load.at.empty(), "a message has bundles");
    if (load.lies_together()) return courier.send(to, load.at[0], load.total());
    Bundles packed = load;
    packed.lay(courier.new_scratch(load.total()));
    for (std::size_t i = 0; i < load.at.size(); ++i) courier.copy(load.at[i], packed.at[i], load.blocks[i]);
    courier.send(to, packed.at[0], load.total());
}

// If the places do not lie one after the other, new scratch takes their place.
void receive(Courier& courier, std::int32_t from, Bundles& load) {
    COCO_CHECK(!load.at.empty(), "a message has bundles");
    if (!load.lies_together()) load.lay(courier.new_scratch(load.total()));
    courier.receive(from, load.at[0], load.total());
}

class MortonExchange {
  public:
    MortonExchange(const Participants& all, Courier& courier)
        : all_(all), courier_(courier), curve_(all.count()) {
        for (Cell cell : curve_.share_of(all.me)) {
            rows_of_[cell.column].push_back(cell.row);
            columns_of_[cell.row].push_back(cell.column);
        }
        sort_all(rows_of_);
        sort_all(columns_of_);
    }

    void run() {
        fetch();
        send_on();
    }

  private:
    void fetch() {
        for (const auto& [sender, receivers] : rows_of_) {
            if (sender == all_.me) continue;
            Bundles load;
            for (std::int32_t r : receivers) load.add({}, all_.blocks(sender, r));
            // A message with the bundle for this participant alone may be received where that bundle ends.
            bool mine = receivers.size() == 1 && receivers[0] == all_.me;
            load.lay(mine ? courier_.wanted(sender) : courier_.new_scratch(load.total()));
            receive(courier_, sender, load);
            for (std::size_t i = 0; i < receivers.size(); ++i) at_[{sender, receivers[i]}] = load.at[i];
        }
        Lists to = group([&](std::int32_t r) { return curve_.owner_of(r, all_.me); });
        for (const auto& [owner, receivers] : to) {
            Bundles load;
            for (std::int32_t r : receivers) load.add(courier_.outgoing(r), all_.blocks(all_.me, r));
            if (owner != all_.me) send(courier_, owner, load);
            for (std::size_t i = 0; owner == all_.me && i < receivers.size(); ++i)
                at_[{all_.me, receivers[i]}] = load.at[i];
        }
        courier_.complete(0);
        for (std::int32_t s : columns_of_[all_.me]) {
            COCO_CHECK(at_.contains({s, all_.me}), "the bundles of the own share were fetched");
            courier_.arrived(s, at_[{s, all_.me}]);
        }
    }

    void send_on() {
        Lists from = group([&](std::int32_t s) { return curve_.owner_of(all_.me, s); });
        std::map<std::int32_t, Bundles> coming;
        for (const auto& [owner, senders] : from) {
            if (owner == all_.me) continue;
            Bundles& load = coming[owner];
            for (std::int32_t s : senders) load.add(courier_.wanted(s), all_.blocks(s, all_.me));
            receive(courier_, owner, load);
        }
        for (const auto& [receiver, senders] : columns_of_) {
            if (receiver == all_.me) continue;
            Bundles load;
            for (std::int32_t s : senders) {
                COCO_CHECK(at_.contains({s, receiver}), "what is sent on was fetched");
                load.add(at_[{s, receiver}], all_.blocks(s, receiver));
            }
            send(courier_, receiver, load);
        }
        courier_.complete(0);
        for (const auto& [owner, load] : coming)
            for (std::size_t i = 0; i < load.at.size(); ++i) courier_.arrived(from[owner][i], load.at[i]);
    }

    // Lists of all other participants, by what `key` returns for them.
    template <class Key>
    Lists group(Key key) const {
        Lists lists;
        for (std::int32_t p = 0; p < all_.count(); ++p)
            if (p != all_.me) lists[key(p)].push_back(p);
        return lists;
    }

    const Participants& all_;
    Courier& courier_;
    Curve curve_;
    Lists rows_of_, columns_of_;  // of this participant's share: by sender, by receiver
    std::map<std::pair<std::int32_t, std::int32_t>, Place> at_;  // by sender and receiver
};

class MortonGather {
  public:
    MortonGather(const Participants& all, Courier& courier)
        : all_(all), courier_(courier), curve_(all.count()) {
        for (Cell cell : curve_.share_of(all.me)) rows_[cell.row].push_back(cell.column);
        sort_all(rows_);
        has_ = fetched_by(all.me);
        for (std::int32_t s = 0; s < all.count(); ++s)
            if (has_[base::index(s)]) fetched_.push_back(s);
    }

    void run() {
        fetch();
        spread();
    }

  private:
    // For each participant: whether `owner` has fetched its bundle.
    std::vector<bool> fetched_by(std::int32_t owner) const {
        std::vector<bool> has(base::index(all_.count()));
        for (Cell cell : curve_.share_of(owner)) has[base::index(cell.column)] = true;
        has[base::index(owner)] = false;
        return has;
    }

    void fetch() {
        for (std::int32_t s : fetched_) courier_.receive(s, courier_.wanted(s), all_.blocks(s, 0));
        std::set<std::int32_t> owners;
        for (std::int32_t r = 0; r < all_.count(); ++r)
            if (r != all_.me) owners.insert(curve_.owner_of(r, all_.me));
        owners.erase(all_.me);
        for (std::int32_t owner : owners)
            courier_.send(owner, courier_.wanted(all_.me), all_.blocks(all_.me, 0));
        courier_.complete(0);
        for (std::int32_t s : fetched_) courier_.arrived(s, courier_.wanted(s));
    }

    void spread() {
        Lists from;
        for (std::int32_t s = 0; s < all_.count(); ++s)
            if (s != all_.me && !has_[base::index(s)]) from[curve_.owner_of(all_.me, s)].push_back(s);
        std::map<std::int32_t, Bundles> coming;
        for (const auto& [owner, senders] : from) {
            Bundles& load = coming[owner];
            for (std::int32_t s : senders) load.add(courier_.wanted(s), all_.blocks(s, 0));
            receive(courier_, owner, load);
        }
        for (const auto& [receiver, senders] : rows_)
            if (receiver != all_.me) send_to(receiver, senders);
        courier_.complete(0);
        for (const auto& [owner, load] : coming)
            for (std::size_t i = 0; i < load.at.size(); ++i) courier_.arrived(from[owner][i], load.at[i]);
    }

    void send_to(std::int32_t receiver, const Numbers& senders) {
        const std::vector<bool> has = fetched_by(receiver);
        Bundles load;
        for (std::int32_t s : senders)
            if (!has[base::index(s)]) load.add(courier_.wanted(s), all_.blocks(s, 0));
        if (!load.at.empty()) send(courier_, receiver, load);
    }

    const Participants& all_;
    Courier& courier_;
    Curve curve_;
    Lists rows_;  // of this participant's share: senders by receiver
    std::vector<bool> has_;
    Numbers fetched_;
};

}  // namespace

void exchange_morton(const Participants& all, Courier& courier) {
    COCO_CHECK(all.me >= 0 && all.me < all.count(), "who exchanges is a participant");
    COCO_CHECK(all.weight.size() == all.rank.size(), "each participant has a weight");
    COCO_CHECK(!all.personal || all.readers.size() == all.rank.size(),
               "each participant of a personal exchange has readers");
    if (all.personal)
        MortonExchange(all, courier).run();
    else
        MortonGather(all, courier).run();
}

schedule::Schedule make_multinode_morton(const Shape& shape) {
    return make_flat(shape, Inner::multinode_morton);
}

}  // namespace coco::algorithms
