// SPDX-License-Identifier: BSD-3-Clause
//
// Aggregation and combining together: two nodes that send bundles to common destinations combine these
// bundles, as ranks combine what they send to common neighbours (schedule/combining.h). The vertices of the
// graph are the nodes. It falls into layers (bundles.h, Leaders), and the leaders of each layer combine among
// themselves. Called by comm, which carries the letters. Thread safety: pure functions, one object for each
// rank.
//
// No rank learns more than the bundles that it leads, carries or receives. One rank of each node also learns
// which bundles end there.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "schedule/bundles.h"

namespace coco::schedule {

// Finishes the bundles of one rank. All ranks go through the same rounds, as with CombiningMaker.
class BundleCombining {
  public:
    // begun: what Bundling::finish() returned. numbered: what Bundling::take_numbered() returned.
    BundleCombining(const topology::NodeMap& map, std::int32_t rank, bool personal, const Leading& leading,
                    Bundles begun, std::vector<Bundled> numbered);

    bool done() const { return stage_ == Stage::done; }
    std::vector<Letter> speak();
    void hear(std::span<const Letter> letters);
    bool wants_more() const;
    void turn(bool any_wants_more);
    // Requires (both): done().
    std::size_t pairs() const { return sends_.trades.size(); }
    Bundles take();

  private:
    enum class Stage : std::uint8_t {
        introductions,  // leaders tell one rank of each node, its chief, what they have for that node
        pattern,        // the rounds of combining, in all layers at once
        arrivals,       // the chief tells the leaders that receive what will come to them
        places,         // they lay it out, and tell the leaders that numbered the blocks where it will be
        receivers,      // these tell the receivers
        done
    };
    struct Layer {
        CombiningMaker::Blocks to, from;
        std::optional<CombiningMaker> maker = {};  // made when the introductions have come
        std::vector<Letter> inbox;
    };
    struct Arrival {
        std::int32_t from;        // the leader that sends
        std::vector<Load> loads;  // their origins are nodes
    };
    using Way = std::pair<std::int32_t, std::int32_t>;  // from a node to a node

    std::vector<Letter> introduce() const;
    std::vector<Letter> speak_in_layers();
    std::vector<Letter> tell_arrivals() const;
    std::vector<Letter> tell_places() const;
    std::vector<Letter> tell_receivers() const;
    void hear_introductions(std::span<const Letter> letters);
    void hear_in_layers(std::span<const Letter> letters);
    void hear_arrivals(std::span<const Letter> letters);
    void hear_places(std::span<const Letter> letters);

    void collect();
    void lay_out_arrivals();
    void name_ranks();
    Cargo name_ranks(const Cargo& cargo) const;

    const Leaders leaders_;
    const std::int32_t rank_, own_node_;
    const bool personal_;
    const Leading leading_;
    Bundles bundles_;
    std::vector<Bundled> numbered_;
    std::map<std::int32_t, Layer> layers_;   // the layers that this rank leads
    CombiningMaker clock_{0, {}, {}, 0, 0};  // counts the rounds on ranks that lead no layer
    Stage stage_ = Stage::introductions;
    CombinedSends sends_;             // with nodes in place of ranks
    std::vector<Cargo> ending_here_;  // the cargo that comes to this node, with nodes in place of ranks
    std::vector<Arrival> arriving_;   // the arrivals at this rank
    std::vector<Letter> asking_;  // which rank asks for the contents of this rank's bundles, to which node
    std::map<Way, std::vector<Load>> contents_;  // allgather: of the bundles that this rank carries or leads
    std::map<std::int32_t, Bundled> places_;     // by sending node: where its bundle begins; no edge is set
};

}  // namespace coco::schedule
