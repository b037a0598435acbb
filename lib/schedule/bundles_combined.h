// SPDX-License-Identifier: BSD-3-Clause
//
// Aggregation and combining composed: nodes that send bundles to nodes that they have in common combine
// these, as ranks combine what they send to neighbours (schedule/combining.h). The graph is that of the
// nodes; it falls into layers, by who leads on every node what goes to a node (bundles.h, Leaders), and each
// layer is combined by its leaders alone. Called by comm, which carries the letters. Thread safety: pure
// functions, one object for each rank.
//
// No rank learns more than the bundles that it leads, carries or receives, and one of each node those that
// end there.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "schedule/bundles.h"

namespace coco::schedule {

// Finishes one rank's bundles. All ranks go through the same rounds, as of CombiningMaker.
class BundleCombining {
  public:
    // begun: of Bundling::finish(). numbered: of Bundling::take_numbered().
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
        introductions,  // leaders tell one rank of each node what they have for it
        pattern,        // the rounds of combining, in all layers at once
        arrivals,       // that one tells those who receive what will come to them, and when
        places,         // they lay it out, and tell those who have numbered the blocks where it will be
        receivers,      // these tell the receivers
        done
    };
    struct Layer {
        CombiningMaker::Blocks to, from;
        std::optional<CombiningMaker> maker = {};  // once it is known what comes
        std::vector<Letter> inbox;
    };
    struct Arrival {
        std::int32_t from;        // leader
        std::vector<Load> loads;  // of nodes
    };
    using Way = std::pair<std::int32_t, std::int32_t>;  // from node to node

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
    std::map<std::int32_t, Layer> layers_;   // that this rank leads
    CombiningMaker clock_{0, {}, {}, 0, 0};  // knows the round, also where the rank leads none
    Stage stage_ = Stage::introductions;
    CombinedSends sends_;             // in nodes
    std::vector<Cargo> ending_here_;  // in nodes
    std::vector<Arrival> arriving_;   // at this rank
    std::vector<Letter> asking_;      // who asks for what is in this rank's bundles, and to which node
    std::map<Way, std::vector<Load>> contents_;  // allgather: of bundles that it carries or leads
    std::map<std::int32_t, Bundled> places_;     // by node: where its bundle begins; the edge does not count
};

}  // namespace coco::schedule
