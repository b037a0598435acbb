// SPDX-License-Identifier: BSD-3-Clause
//
// The patterns of combining, kept with the process topology that they are for, and the letters between ranks
// by which they are made (see schedule/combining.h).
#include "schedule/combining.h"
#include "base/check.h"
#include "base/index.h"

#include "base/log.h"
#include "comm/comm.h"
#include "comm/deal.h"
#include "comm/look_up.h"
#include "os/clock.h"

namespace coco::comm {
namespace {

struct Post {
    std::uint64_t rounds = 0, letters = 0, bytes = 0;  // how many this rank sent

    // Letters travel as words: sender, length, letter.
    std::vector<schedule::Letter> exchange(const Comm& comm,
                                           const std::vector<schedule::Letter>& letters_out) {
        std::vector<std::int32_t> words, to;
        for (const schedule::Letter& letter : letters_out) {
            words.insert(words.end(), {comm.rank, base::number(letter.words.size())});
            words.insert(words.end(), letter.words.begin(), letter.words.end());
            to.resize(words.size(), letter.rank);
        }
        ++rounds;
        letters += letters_out.size();
        bytes += words.size() * sizeof words[0];
        const auto came = deal(comm, words, to);
        std::vector<schedule::Letter> in;
        for (auto at = came.begin(); at != came.end();) {
            auto begin = at + 2, end = begin + at[1];
            in.push_back({at[0], {begin, end}});
            at = end;
        }
        return in;
    }
};

// Takes the maker through its rounds. Requires: all ranks of the communicator call it in the same call.
schedule::Combining make_by_letters(const Comm& comm, schedule::CombiningMaker maker) {
    const std::uint64_t begin_ns = os::now_ns();
    Post post;
    while (!maker.done()) {
        maker.hear(post.exchange(comm, maker.speak()));
        maker.turn(!mpi::on_all_ranks(comm.handle, !maker.wants_more()));
    }
    COCO_LOG(info, "combining: pattern of " << comm.ranks << " ranks made in " << post.rounds << " rounds, "
                                            << (os::now_ns() - begin_ns) / 1000 << " us; sent "
                                            << post.letters << " letters of " << post.bytes
                                            << " bytes in all; pairs: " << maker.pairs());
    return maker.take();
}

}  // namespace

const schedule::Combining& make_combining(Comm& comm, algorithms::Collective collective,
                                          const algorithms::Parameters& parameters) {
    COCO_CHECK(comm.neighbors != nullptr && comm.map.nodes() > 1,
               "messages are combined among neighbours on several nodes");
    Neighbors& near = *comm.neighbors;
    const schedule::Neighborhood& graph = near.graph_of(collective);
    for (const Neighbors::Pattern& kept : near.patterns)
        if (kept.graph == &graph && kept.threshold == parameters.threshold && kept.depth == parameters.depth)
            return *kept.made;
    auto made = std::make_unique<schedule::Combining>(
        make_by_letters(comm, {comm.map, comm.rank, graph, parameters.threshold, parameters.depth}));
    return *near.patterns
                .emplace_back(
                    Neighbors::Pattern{&graph, parameters.threshold, parameters.depth, std::move(made)})
                .made;
}

}  // namespace coco::comm
