// SPDX-License-Identifier: BSD-3-Clause
//
// Several calls of one communicator under way at once. Each rank has two lanes and makes two calls, one on
// each. A call's flight has a stack of its own (fiber.h), which it leaves when it has to wait.
//   flights orders [MOST]   one thread stands in for all ranks, and takes the flights in every order in which
//                           they can get ahead, or in MOST of them (default 1500)
//   flights threads [TURNS] a thread for each rank, which takes its flights in a random order, so many times
//                           (600)
// A third word, `pieces`, forbids reading private memory through the kernel; `refused` has the kernel refuse
// reads in the midst of calls. All pairs of calls that differ in how blocks are published, read and waited
// for. What a call receives is compared with what was sent to it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "algorithms/algorithm.h"
#include "channel/control_pool.h"
#include "comm/comm.h"
#include "exec/call.h"
#include "fiber.h"
#include "heap/heap.h"
#include "heap/segment.h"

namespace {

using namespace coco;
using algorithms::Collective;

constexpr std::size_t kLanes = 2;

struct Kind {
    const char* name;
    Collective collective;
    const char* algorithm;
    std::uint64_t block_bytes;  // v forms: the largest
    bool shared;                // the buffers are on the shared heap
    bool refused = false;       // all ranks hand the call back
    std::uint64_t segment_bytes = 0;
    bool even_shared = false;  // the buffers of even ranks are on the shared heap
    bool odd_lean = false;     // v forms: odd ranks send a few bytes to each
    bool private_recv = false;
    // Blocks of a layout: rows of 64 bytes with 16 between them.
    bool send_holes = false, recv_holes = false;
    bool odd_holes = false;  // only on odd ranks
};

// Small ones in slots, on the stage and in place; calls whose ranks read one another, and write one another;
// calls that agree first, and that refuse; bcasts on the tape, on the stage, in place and in trains of
// segments.
constexpr Kind kKinds[] = {
    {"alltoall in slots", Collective::alltoall, "eager", 8, true},
    {"alltoall on the stage", Collective::alltoall, "eager", 3000, false},
    {"alltoall in place", Collective::alltoall, "naive", 3000, true},
    {"alltoall by the curve", Collective::alltoall, "morton", 500, true},
    {"alltoall refused", Collective::alltoall, "naive", 100'000, false, true},
    {"alltoall in pieces", Collective::alltoall, "naive", 150'000, false},
    {"alltoall in pieces instead of a curve", Collective::alltoall, "morton", 130'000, false},
    {"allgather in pieces", Collective::allgather, "naive", 170'000, false},
    {"alltoallv in pieces", Collective::alltoallv, "eager", 140'000, false},
    {.name = "alltoall of some in pieces",
     .collective = Collective::alltoall,
     .algorithm = "numa_morton",
     .block_bytes = 130'000,
     .shared = false,
     .even_shared = true},
    {.name = "alltoall that nobody can write",
     .collective = Collective::alltoall,
     .algorithm = "morton",
     .block_bytes = 130'000,
     .shared = true,
     .private_recv = true},
    {.name = "alltoallv that nobody can write",
     .collective = Collective::alltoallv,
     .algorithm = "morton",
     .block_bytes = 130'000,
     .shared = true,
     .private_recv = true},
    {.name = "alltoallv of few and in pieces",
     .collective = Collective::alltoallv,
     .algorithm = "eager",
     .block_bytes = 140'000,
     .shared = false,
     .odd_lean = true},
    {.name = "allgatherv of few and in pieces",
     .collective = Collective::allgatherv,
     .algorithm = "eager",
     .block_bytes = 170'000,
     .shared = false,
     .odd_lean = true},
    {.name = "alltoall with holes",
     .collective = Collective::alltoall,
     .algorithm = "naive",
     .block_bytes = 70'000,
     .shared = true,
     .send_holes = true,
     .recv_holes = true},
    {.name = "alltoallv with holes that would fit the stage",
     .collective = Collective::alltoallv,
     .algorithm = "eager",
     .block_bytes = 30'000,
     .shared = true,
     .send_holes = true},
    {.name = "alltoallv with holes, from private memory to shared",
     .collective = Collective::alltoallv,
     .algorithm = "morton",
     .block_bytes = 140'000,
     .shared = true,
     .even_shared = true,
     .send_holes = true,
     .odd_holes = true},
    {.name = "alltoallv of private blocks with holes",
     .collective = Collective::alltoallv,
     .algorithm = "eager",
     .block_bytes = 140'000,
     .shared = false,
     .send_holes = true,
     .recv_holes = true},
    {.name = "allgatherv to memory with holes",
     .collective = Collective::allgatherv,
     .algorithm = "eager",
     .block_bytes = 170'000,
     .shared = false,
     .even_shared = true,
     .recv_holes = true,
     .odd_holes = true},
    {.name = "allgather with holes of few",
     .collective = Collective::allgather,
     .algorithm = "naive",
     .block_bytes = 170'000,
     .shared = false,
     .send_holes = true,
     .recv_holes = true,
     .odd_holes = true},
    {"allgather staged", Collective::allgather, "naive", 700, false},
    {"alltoallv in slots", Collective::alltoallv, "eager", 40, true},
    {"alltoallv in place", Collective::alltoallv, "naive", 900, true},
    {"alltoallv by the curve", Collective::alltoallv, "morton", 900, true},
    {"allgatherv read late", Collective::allgatherv, "eager", 5000, true},
    {"bcast on the tape", Collective::bcast, "eager", 8, true},
    {"bcast on the stage", Collective::bcast, "eager", 3000, true},
    {"bcast in place", Collective::bcast, "direct", 5000, true},
    {"bcast in trains", Collective::bcast, "segmented", 70'000, false, false, 1024},
};

// The bytes of a block count up, and begin again behind 255. So any kCounted of them lie somewhere in here.
constexpr std::size_t kCounted = 4096;
constexpr auto kCounting = [] {
    std::array<std::byte, kCounted + 256> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    return bytes;
}();

// What `sender` sends to `receiver` from offset `place` of a block on, kCounted bytes.
const std::byte* bytes_at(std::uint32_t call, std::int32_t sender, std::int32_t receiver,
                          std::uint64_t place) {
    return &kCounting[(call * 131 + static_cast<std::uint32_t>(sender) * 31 +
                       static_cast<std::uint32_t>(receiver) * 7 + place) %
                      256];
}

std::size_t count_wrong(const std::byte* bytes, const std::byte* right, std::uint64_t count) {
    if (std::memcmp(bytes, right, count) == 0) return 0;
    std::size_t wrong = 0;
    for (std::uint64_t i = 0; i < count; ++i) wrong += bytes[i] != right[i];
    return wrong;
}

struct Memory {
    explicit Memory(bool shared) : shared(shared) {}
    ~Memory() {
        if (shared) heap::release(at);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    std::byte* fetch(std::uint64_t bytes) {
        bytes = std::max<std::uint64_t>(bytes, 4096);
        if (shared && at == nullptr) at = static_cast<std::byte*>(heap::allocate_aligned(64, 2 << 20));
        if (!shared) {
            own.resize(bytes);
            at = own.data();
        }
        return at;
    }
    const bool shared;
    std::byte* at = nullptr;
    std::vector<std::byte> own;
};

// One rank's part of a call: its buffers, and what must come.
class Part {
  public:
    Part(const Kind& kind, std::int32_t rank, std::int32_t ranks, std::uint32_t number)
        : kind_(kind),
          rank_(rank),
          ranks_(ranks),
          number_(number),
          send_(is_shared()),
          recv_(is_shared() && !kind.private_recv) {
        call_.common = {.collective = kind.collective,
                        .root = static_cast<std::int32_t>(number) % ranks,
                        .block_bytes = base::is_sized(kind.collective) ? 0 : kind.block_bytes,
                        .sized = base::is_sized(kind.collective)};
        if (kind.collective == Collective::bcast)
            make_bcast();
        else
            make_exchange();
        if (kind.refused) call_.local.send.packer = &never_packed_;
    }

    const exec::Call& call() const { return call_; }
    // Returns: how many bytes are wrong.
    std::size_t wrong() const {
        std::size_t wrong = 0;
        const bool is_bcast = kind_.collective == Collective::bcast;
        for (std::int32_t from = 0; from < (is_bcast ? 1 : ranks_); ++from) {
            std::byte* block = is_bcast ? recv_.at : recv_.at + offset(from, rank_, false);
            const std::int32_t sender = is_bcast ? call_.common.root : from;
            const std::uint64_t bytes = is_bcast ? kind_.block_bytes : bytes_of(from, rank_);
            for_each_piece(block, call_.local.recv.layout_of_block(from), bytes,
                           [&](const std::byte* piece, std::uint64_t piece_bytes, std::uint64_t place) {
                               wrong += count_wrong(
                                   piece, bytes_at(number_, sender, receiver_of(rank_), place), piece_bytes);
                           });
            if (has_holes(false) && bytes > 144) wrong += block[bytes % 64 + 1] != std::byte{0xEE};
        }
        return wrong;
    }

  private:
    bool has_holes(bool sends) const {
        return (sends ? kind_.send_holes : kind_.recv_holes) && (!kind_.odd_holes || rank_ % 2 == 1);
    }
    bool is_shared() const { return kind_.shared || (kind_.even_shared && rank_ % 2 == 0); }
    bool personal() const { return base::is_personal(kind_.collective); }
    std::int32_t receiver_of(std::int32_t rank) const { return personal() ? rank : 0; }
    std::uint64_t bytes_of(std::int32_t from, std::int32_t to) const {
        if (!base::is_sized(kind_.collective)) return kind_.block_bytes;
        if (kind_.odd_lean && from % 2 == 1) return 5;
        const auto mixed = static_cast<std::uint64_t>(from * 7 + (personal() ? to * 3 : 0)) + number_;
        return mixed % 5 == 0 ? 0 : kind_.block_bytes - mixed % 5;
    }
    // The offset of a block in the send buffer of `from`, or in the receive buffer of `to`.
    std::uint64_t offset(std::int32_t from, std::int32_t to, bool sends) const {
        if (has_holes(sends)) return static_cast<std::uint64_t>(sends ? to : from) * pitch_bytes();
        std::uint64_t at = 0;
        for (std::int32_t r = 0; r < (sends ? to : from); ++r)
            at += sends ? bytes_of(from, r) : bytes_of(r, to);
        return at;
    }

    std::uint64_t pitch_bytes() const { return 3 * kind_.block_bytes / 2 + 64; }

    // Calls act(piece, bytes, its place in the block) for all pieces of a block, of kCounted bytes at most.
    template <class Act>
    static void for_each_piece(std::byte* block, const blocks::BlockLayout& layout, std::uint64_t bytes,
                               Act act) {
        std::uint64_t place = 0;
        blocks::for_each_run(block, layout, 0, bytes, [&](std::byte* run, std::uint64_t run_bytes) {
            for (std::uint64_t done = 0; done < run_bytes; done += kCounted) {
                const std::uint64_t piece_bytes = std::min<std::uint64_t>(run_bytes - done, kCounted);
                act(run + done, piece_bytes, place);
                place += piece_bytes;
            }
            return true;
        });
    }
    void fill(std::byte* at, std::int32_t to, std::uint64_t bytes, const blocks::BlockLayout& layout = {}) {
        for_each_piece(at, layout, bytes,
                       [&](std::byte* piece, std::uint64_t piece_bytes, std::uint64_t place) {
                           std::memcpy(piece, bytes_at(number_, rank_, to, place), piece_bytes);
                       });
    }
    // A layout of two pieces.
    void add_layout(std::vector<blocks::BlockLayout>& layouts, std::uint64_t bytes) {
        blocks::Layout layout = blocks::Layout::run(0, bytes % 64), rows = blocks::Layout::run(80, 64);
        rows.repeat(static_cast<std::int64_t>(bytes / 64), 80);
        layout.append(rows);
        const std::int64_t low = layout.bounds().low;
        layout.shift(-low);
        words_.push_back(layout.words());
        layouts.push_back({words_.back().data(), 1, 0, layout.bounds().high});
    }
    void give_layouts(blocks::Buffer& buffer, std::vector<blocks::BlockLayout>& layouts, std::int32_t count,
                      bool sends) {
        for (std::int32_t r = 0; r < (buffer.blocks.empty() ? 1 : count); ++r)
            add_layout(layouts, buffer.blocks.empty() ? kind_.block_bytes
                                : sends               ? bytes_of(rank_, r)
                                                      : bytes_of(r, rank_));
        buffer.packer = &never_packed_;
        buffer.layouts = layouts;
        if (buffer.blocks.empty()) buffer.stride_bytes = static_cast<std::int64_t>(pitch_bytes());
    }
    void make_bcast() {
        std::byte* buffer = recv_.fetch(kind_.block_bytes);
        std::memset(buffer, 0xEE, kind_.block_bytes);
        if (rank_ == call_.common.root) fill(buffer, 0, kind_.block_bytes);
        blocks::Buffer side{.base = buffer,
                            .stride_bytes = static_cast<std::int64_t>(kind_.block_bytes),
                            .block_bytes = kind_.block_bytes,
                            .block_count = 1};
        call_.local = {.send = side, .recv = side, .bytes = kind_.block_bytes};
    }
    void make_exchange() {
        const std::int32_t sends = personal() ? ranks_ : 1;
        const bool any_holes = kind_.send_holes || kind_.recv_holes;
        const std::uint64_t most =
            static_cast<std::uint64_t>(ranks_) * (any_holes ? pitch_bytes() : kind_.block_bytes);
        std::byte *from = send_.fetch(most), *to = recv_.fetch(most);
        std::memset(to, 0xEE, most);
        call_.local = {.send = side(from, sends, true), .recv = side(to, ranks_, false)};
        if (has_holes(true)) give_layouts(call_.local.send, send_block_layouts_, sends, true);
        if (has_holes(false)) give_layouts(call_.local.recv, recv_block_layouts_, ranks_, false);
        for (std::int32_t r = 0; r < sends; ++r)
            fill(from + offset(rank_, r, true), r, bytes_of(rank_, r), call_.local.send.layout_of_block(r));
    }
    blocks::Buffer side(std::byte* base, std::int32_t count, bool sends) {
        blocks::Buffer buffer{.base = base,
                              .stride_bytes = static_cast<std::int64_t>(kind_.block_bytes),
                              .block_bytes = kind_.block_bytes,
                              .block_count = count};
        if (!base::is_sized(kind_.collective)) return buffer;
        auto& blocks = sends ? send_blocks_ : recv_blocks_;
        for (std::int32_t r = 0; r < count; ++r) {
            const std::uint64_t at = sends ? offset(rank_, r, true) : offset(r, rank_, false);
            const std::uint64_t bytes = sends ? bytes_of(rank_, r) : bytes_of(r, rank_);
            blocks.push_back({static_cast<std::int64_t>(at), bytes});
            buffer.total_bytes += bytes;
        }
        buffer.blocks = blocks;
        return buffer;
    }

    // A derived type that is too irregular and too large to take part.
    struct NeverPacked final : blocks::Packer {
        void pack(std::int32_t, std::byte*) const override { std::abort(); }
        void unpack(std::int32_t, const std::byte*) const override { std::abort(); }
    };
    const NeverPacked never_packed_;

    const Kind& kind_;
    const std::int32_t rank_, ranks_;
    const std::uint32_t number_;
    Memory send_, recv_;
    std::vector<blocks::BlockAt> send_blocks_, recv_blocks_;
    std::vector<blocks::BlockLayout> send_block_layouts_, recv_block_layouts_;
    std::deque<std::vector<std::int64_t>> words_;
    exec::Call call_{};
};

// The communicators of all ranks, in one process. Flights are left in their waits, unless told to wait.
class World {
  public:
    explicit World(std::int32_t ranks, const sync::WaitPolicy& waiting)
        : ranks_(ranks),
          waiting_(waiting),
          // A call chooses how it publishes by whether waits spin at all.
          leaving_{.spins = waiting.spins == 0 ? 0u : 1u, .yields = 1, .progress = &test::Fiber::leave} {
        const std::vector<std::uint64_t> node(static_cast<std::size_t>(ranks)), domain(node);
        std::vector<channel::Control*> controls;
        for (std::size_t i = 0; i < kLanes * static_cast<std::size_t>(ranks); ++i)
            controls.push_back(channel::control_pool().take());
        for (std::int32_t r = 0; r < ranks; ++r) {
            comm::Comm& comm = *comms_.emplace_back(std::make_unique<comm::Comm>());
            comm.rank = r;
            comm.ranks = ranks;
            comm.map = topology::make_node_map(node, domain);
            for (std::int32_t mate = 0; mate < ranks; ++mate)
                if (mate != r) comm.mates.push_back(mate);
            lanes_.push_back(std::make_unique<comm::Lane>());
            lanes_.back()->number = 1;
            open(comm, comm.lane, &controls[0]);
            open(comm, *lanes_.back(), &controls[static_cast<std::size_t>(ranks)]);
        }
    }
    ~World() {
        for (auto& lane : lanes_) {
            lane->blocks.release_rooms();
            static_cast<void>(lane->channel.close());
        }
    }
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    std::int32_t ranks() const { return ranks_; }
    comm::Comm& comm(std::int32_t rank) { return *comms_[static_cast<std::size_t>(rank)]; }
    comm::Lane& lane(std::int32_t rank, std::size_t number) {
        return number == 0 ? comm(rank).lane : *lanes_[static_cast<std::size_t>(rank)];
    }
    // Whether the lane's flight is left in its waits from now on, also in the wait in which it was left last.
    // Requires: the flight does not run now.
    void let_leave(std::int32_t rank, std::size_t number, bool leaves) {
        lane(rank, number).channel.waiting = leaves ? leaving_ : waiting_;
    }

  private:
    void open(const comm::Comm& comm, comm::Lane& lane, channel::Control* const* controls) const {
        std::vector<channel::Peer> peers;
        for (std::int32_t r = 0; r < comm.ranks; ++r)
            peers.push_back({.segment = heap::own().base, .control = controls[r]});
        lane.channel.open(0, comm.rank, std::move(peers), comm.mates);
        lane.channel.waiting = leaving_;
    }

    const std::int32_t ranks_;
    const sync::WaitPolicy waiting_, leaving_;
    std::vector<std::unique_ptr<comm::Comm>> comms_;
    std::vector<std::unique_ptr<comm::Lane>> lanes_;  // the second of each rank
};

int g_wrong = 0;

// A call under way: one rank's part of it, on a lane.
class Flight {
  public:
    Flight(World& world, std::int32_t rank, std::size_t lane, const Kind& kind, std::uint32_t number)
        : kind_(kind), rank_(rank), part_(kind, rank, world.ranks(), number), fiber_([this, &world, lane] {
              outcome_ =
                  exec::run(world.comm(rank_), world.lane(rank_, lane), part_.call(),
                            *algorithms::find(kind_.algorithm), {.segment_bytes = kind_.segment_bytes});
          }) {}

    // Goes on until the call is over, or left in a wait. Returns: whether it is over.
    bool advance() { return fiber_.resume(); }
    // Requires: the call is over.
    void judge() const {
        const bool refused = outcome_.reason != stats::Reason::none;
        const std::size_t wrong = kind_.refused                   ? !refused
                                  : refused || outcome_.truncated ? 1
                                                                  : part_.wrong();
        if (wrong == 0) return;
        std::printf("%s, rank %d: %zu wrong\n", kind_.name, rank_, wrong);
        ++g_wrong;
    }

  private:
    const Kind& kind_;
    const std::int32_t rank_;
    const Part part_;
    exec::Outcome outcome_;
    test::Fiber fiber_;
};

// All ranks' flights of two calls, in one thread.
class Together {
  public:
    Together(World& world, const Kind& first, const Kind& second, std::uint32_t number) : world_(world) {
        for (std::int32_t r = 0; r < world.ranks(); ++r)
            for (std::size_t lane = 0; lane < kLanes; ++lane)
                flights_.push_back({std::make_unique<Flight>(world, r, lane, lane == 0 ? first : second,
                                                             2 * number + static_cast<std::uint32_t>(lane))});
    }

    // The flights that may get ahead: those that are not over and have not stood still since anything moved.
    std::vector<std::size_t> ready() const {
        std::vector<std::size_t> all;
        for (std::size_t i = 0; i < flights_.size(); ++i)
            if (!flights_[i].over && flights_[i].stood_at != moved()) all.push_back(i);
        return all;
    }
    void advance(std::size_t i) {
        One& one = flights_[i];
        const std::uint64_t before = moved();
        one.begun = true;
        one.over = one.flight->advance();
        if (one.over)
            one.flight->judge();
        else if (moved() == before)
            one.stood_at = before;
    }
    bool all_over() const {
        for (const One& one : flights_)
            if (!one.over) return false;
        return true;
    }

  private:
    struct One {
        std::unique_ptr<Flight> flight;
        bool begun = false, over = false;
        std::uint64_t stood_at = UINT64_MAX;
    };
    // Grows whenever some rank raises a word that others may wait for: all such words only grow.
    // The begin of a call raises none, but raised() counts it as a lap of the tape.
    std::uint64_t moved() const {
        std::uint64_t sum = 0;
        for (const One& one : flights_) sum += one.begun ? 0 : channel::kTapeBytes;
        for (std::int32_t r = 0; r < world_.ranks(); ++r)
            for (std::size_t lane = 0; lane < kLanes; ++lane) sum += world_.lane(r, lane).channel.raised();
        return sum;
    }

    World& world_;
    std::vector<One> flights_;
};

// Plays the orders one after the other, each by its choices among those that were ready.
class Orders {
  public:
    Orders(World& world, const Kind& first, const Kind& second)
        : world_(world), first_(first), second_(second) {}

    // Returns: how many orders were played, all of them unless that is `most`.
    std::uint64_t play_all(std::uint64_t most) {
        std::uint64_t played = 0;
        for (; played < most; ++played) {
            play(next_number_++, nullptr);
            while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().of) choices_.pop_back();
            if (choices_.empty()) return played + 1;
            ++choices_.back().taken;
        }
        return played;
    }
    void play_random(std::uint64_t orders) {
        std::mt19937 random(11);
        for (; orders != 0; --orders) play(next_number_++, &random);
    }

  private:
    struct Choice {
        std::size_t taken, of;
    };
    void play(std::uint32_t number, std::mt19937* random) {
        // The number decides the sizes of v forms and the root: it must be the same for all orders of one
        // tree.
        Together together(world_, first_, second_, random != nullptr ? number : 1);
        for (std::size_t depth = 0; !together.all_over(); ++depth) {
            const std::vector<std::size_t> ready = together.ready();
            if (ready.empty()) {
                std::printf("%s and %s wait for ever\n", first_.name, second_.name);
                std::exit(1);
            }
            together.advance(ready[choose(depth, ready.size(), random)]);
        }
    }
    std::size_t choose(std::size_t depth, std::size_t of, std::mt19937* random) {
        if (random != nullptr) return (*random)() % of;
        if (depth == choices_.size()) choices_.push_back({0, of});
        return choices_[depth].taken;
    }

    World& world_;
    const Kind &first_, &second_;
    std::vector<Choice> choices_;
    static inline std::uint32_t next_number_ = 2;
};

void play_orders(std::uint64_t most) {
    World two(2, {}), three(3, {});
    std::uint64_t orders = 0, whole = 0, pairs = 0;
    for (std::size_t i = 0; i < std::size(kKinds); ++i)
        for (std::size_t j = i; j < std::size(kKinds); ++j) {
            const Kind &first = kKinds[i], &second = kKinds[j];
            // Long blocks take their time.
            const bool slow = std::max(first.block_bytes, second.block_bytes) > 100'000;
            const std::uint64_t limit = slow ? most / 25 : most;
            const std::uint64_t played = Orders(two, first, second).play_all(limit);
            orders += played;
            whole += played < limit;
            ++pairs;
            Orders(two, first, second).play_random(most / (slow ? 60 : 30));
            Orders(three, second, first).play_random(most / (slow ? 30 : 15));
        }
    std::printf("%llu orders of %llu pairs of calls on 2 ranks, all orders of %llu pairs\n",
                static_cast<unsigned long long>(orders), static_cast<unsigned long long>(pairs),
                static_cast<unsigned long long>(whole));
}

// A root runs ahead until its tape is full, and then wants all of its stage and a record. Its reader comes
// when the root waits: that must not be for readers of a call that has not begun.
void play_ahead() {
    static constexpr Kind kLarge{
        "bcast behind a full tape", Collective::bcast, "segmented", 300'000, false, false, 64 * 1024};
    // Small bcasts of many lengths, so that the tape is full up to every place in turn.
    std::vector<Kind> small;
    for (std::uint64_t i = 0; i < 19; ++i)
        small.push_back({"bcast on a full tape", Collective::bcast, "eager", 872 + 8 * i, true});
    constexpr std::uint32_t kCalls = 4000;
    World world(2, {});
    struct Side {
        std::uint32_t call = 0;
        std::unique_ptr<Flight> flight;
    } sides[2];
    int full = 0;
    // Returns: whether the rank's call is over.
    auto advance = [&](std::int32_t rank) {
        Side& side = sides[rank];
        const bool is_small = side.call % 48 != 47;
        const Kind& kind = is_small ? small[side.call * 7 % small.size()] : kLarge;
        if (side.flight == nullptr)  // rank 0 is the root
            side.flight = std::make_unique<Flight>(world, rank, 0, kind, 2 * side.call);
        if (!side.flight->advance()) {
            full += rank == 0 && is_small;  // for which nothing else is waited for
            return false;
        }
        side.flight->judge();
        side.flight.reset();
        ++side.call;
        return true;
    };
    for (int turn = 0; turn < 200'000 && (sides[0].call < kCalls || sides[1].call < kCalls); ++turn) {
        while (sides[0].call < kCalls && advance(0)) continue;
        if (sides[1].call < kCalls) static_cast<void>(advance(1));
    }
    if (sides[0].call == kCalls && sides[1].call == kCalls && full != 0) return;
    std::printf(
        "a root that runs ahead waits for ever in call %u, its reader in call %u; its tape was full %d "
        "times\n",
        sides[0].call, sides[1].call, full);
    ++g_wrong;
}

// One rank. Draws alike on all ranks which two calls are next, and on its own which flight is next.
void play_rank(World& world, std::int32_t rank, int turns) {
    std::mt19937 calls(5), own(static_cast<std::uint32_t>(100 + rank));
    for (int turn = 0; turn < turns; ++turn) {
        std::unique_ptr<Flight> flights[kLanes];
        for (std::size_t lane = 0; lane < kLanes; ++lane)
            flights[lane] = std::make_unique<Flight>(
                world, rank, lane, kKinds[calls() % std::size(kKinds)],
                static_cast<std::uint32_t>(2 * turn) + static_cast<std::uint32_t>(lane));
        bool over[kLanes] = {};
        while (!over[0] || !over[1]) {
            const std::size_t lane = own() % kLanes;
            if (over[lane]) continue;
            // Now and then the last one is not left any more, but spins and sleeps in its waits.
            world.let_leave(rank, lane, !over[1 - lane] || own() % 2 != 0);
            over[lane] = flights[lane]->advance();
        }
        for (const std::unique_ptr<Flight>& flight : flights) flight->judge();
    }
}

void play_threads(int turns) {
    constexpr std::int32_t kRanks = 4;
    for (const sync::WaitPolicy& waiting :
         {sync::WaitPolicy{.spins = 50},
          sync::WaitPolicy{.spins = 0, .yields = 4, .least_sleep_ns = 10'000, .most_sleep_ns = 200'000}}) {
        World world(kRanks, waiting);
        std::vector<std::thread> threads;
        for (std::int32_t r = 0; r < kRanks; ++r)
            threads.emplace_back([&, r] { play_rank(world, r, turns); });
        for (std::thread& thread : threads) thread.join();
    }
    std::printf("2 x %d pairs of calls on %d threads\n", turns, kRanks);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    const std::string_view how = argc > 3 ? argv[3] : "";
    channel::g_never_reads = how == "pieces";
    // To play all orders one run must be like the next: there all reads are refused.
    if (how == "refused") channel::g_refused_reads = what == "orders" ? 1 : 3;
    if (what == "orders") {
        play_ahead();
        play_orders(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1500);
    } else if (what == "threads")
        play_threads(argc > 2 ? std::atoi(argv[2]) : 600);
    else
        return 2;
    return g_wrong == 0 ? 0 : 1;
}
