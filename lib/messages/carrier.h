// SPDX-License-Identifier: BSD-3-Clause
//
// The protocol of messages whose blocks have sizes of their own (messages/format.h): in which order a rank
// starts them, learns their lengths, fetches what did not come along, and takes them apart. Written once, for
// the v and w forms of all exchanges, and for the simulator of bench/simulate.
//
// A Port moves the bytes and knows where blocks are:
//   Cargo                         what it keeps for one load of blocks; default constructible
//   format()                      the call's Format
//   pack(load)                    puts a load together. Returns: the bytes of its data
//   start_send(load, part, bytes), start_receive(load, part, bytes)
//   learn(load)                   after the head has come. Returns: the bytes of its data
//   complete(load, part)          waits
//   unpack(load)                  all is there: gives each block its place
//   sent(load)                    a load is through
#pragma once
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "messages/format.h"
#include "schedule/place.h"

namespace coco::messages {

enum class Part : std::uint8_t { head, rest };

// Blocks that go to a rank in one message, or come from one: they lie in one area, one after another.
template <class Cargo>
struct Load {
    bool sends;
    bool has_rest;
    std::int32_t peer;
    schedule::Place first;
    std::int32_t blocks;
    Cargo cargo;

    schedule::Place place(std::int32_t i) const { return {first.owner, first.area, first.index + i}; }
};

// Loads under way, in the order of their start. Kept from call to call by its owner, as are the cargoes.
template <class Cargo>
struct Loads {
    std::vector<Load<Cargo>> all;
    std::size_t used = 0;     // how many of `all` this call uses
    std::size_t known = 0;    // the heads of so many of these are through
    std::size_t through = 0;  // so many of these are wholly through

    void clear() { used = known = through = 0; }
    Load<Cargo>& add(bool sends, std::int32_t peer, schedule::Place first, std::int32_t blocks) {
        COCO_CHECK_DEAR(peer >= 0 && blocks > 0, "a load has blocks and goes to a rank, or comes from one");
        if (used == all.size()) all.emplace_back();
        Load<Cargo>& load = all[used++];
        load.sends = sends;
        load.has_rest = false;
        load.peer = peer;
        load.first = first;
        load.blocks = blocks;
        return load;
    }
};

template <class Port>
void send_load(Port& port, Loads<typename Port::Cargo>& loads, std::int32_t to, schedule::Place first,
               std::int32_t blocks) {
    auto& load = loads.add(true, to, first, blocks);
    const Parts parts = port.format().parts_of(blocks, port.pack(load));
    port.start_send(load, Part::head, parts.first_bytes);
    load.has_rest = parts.second_bytes != 0;
    if (load.has_rest) port.start_send(load, Part::rest, parts.second_bytes);
}

template <class Port>
void receive_load(Port& port, Loads<typename Port::Cargo>& loads, std::int32_t from, schedule::Place first,
                  std::int32_t blocks) {
    auto& load = loads.add(false, from, first, blocks);
    port.start_receive(load, Part::head, port.format().most_bytes(blocks));
}

// Waits for all loads but the last `left`. A rest is asked for as soon as its head is there: before its
// sender is rid of the rest, it may not start messages on which later heads depend.
template <class Port>
void complete_loads(Port& port, Loads<typename Port::Cargo>& loads, std::size_t left) {
    COCO_CHECK_DEAR(loads.through <= loads.known && loads.known <= loads.used,
                    "heads are through before rests");
    const std::size_t end = loads.used - std::min(left, loads.used);
    for (; loads.known < end; ++loads.known) {
        auto& load = loads.all[loads.known];
        port.complete(load, Part::head);
        if (load.sends) continue;
        const Parts parts = port.format().parts_of(load.blocks, port.learn(load));
        load.has_rest = parts.second_bytes != 0;
        if (load.has_rest) port.start_receive(load, Part::rest, parts.second_bytes);
    }
    for (; loads.through < end; ++loads.through) {
        auto& load = loads.all[loads.through];
        if (load.has_rest) port.complete(load, Part::rest);
        if (load.sends)
            port.sent(load);
        else
            port.unpack(load);
    }
}

}  // namespace coco::messages
