// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/datatype.h"

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "base/of_thread.h"
#include "mpi/library.h"
#include "mpi/progress.h"

namespace coco::dispatch {
namespace {

// A type as pieces of runs: is it one run, and where?
struct Run {
    bool ok = true;
    bool empty = true;
    std::int64_t offset_bytes = 0;
    std::int64_t bytes = 0;
    std::int64_t extent_bytes = 0;

    // Appends `count` elements of `old` at `displacement`: they must continue the run.
    void append(const Run& old, std::int64_t displacement, std::int64_t count) {
        if (count == 0 || old.bytes == 0) return;
        if (!old.ok || (count > 1 && old.extent_bytes != old.bytes)) ok = false;
        std::int64_t begin = displacement + old.offset_bytes;
        if (empty) offset_bytes = begin;
        if (!empty && begin != offset_bytes + bytes) ok = false;
        empty = false;
        bytes += count * old.bytes;
    }
};

// How a type was made, and of how much. Only the functions with _c describe types made with large counts.
struct Envelope {
    mpi::Combiner combiner{};
    mpi::Count ints = 0, addresses = 0, large = 0, types = 0;
};

struct Contents {
    mpi::Combiner combiner{};
    // The counts: ints, or, where the type was made with large counts, these, in the same order, with displacements
    // in bytes behind them instead of in addresses.
    std::vector<mpi::Count> counts;
    std::vector<mpi::Aint> addresses;
    mpi::Handles<mpi::Datatype> types;

    mpi::Count count(mpi::Count i) const { return counts[static_cast<std::size_t>(i)]; }
    // The i-th displacement. first: the place of the first one among large counts.
    mpi::Count bytes_at(mpi::Count i, mpi::Count first) const {
        return addresses.empty() ? count(first + i) : addresses[static_cast<std::size_t>(i)];
    }
};

// Returns: false if the type cannot be looked into.
bool envelope_of(mpi::Datatype type, Envelope& e) {
    const mpi::Library& lib = mpi::lib();
    int combiner = 0, ints = 0, addresses = 0, types = 0;
    const bool large = lib.Type_get_envelope_c != nullptr;
    const int rc = large ? lib.Type_get_envelope_c(type, &e.ints, &e.addresses, &e.large, &e.types, &combiner)
                         : lib.Type_get_envelope(type, &ints, &addresses, &types, &combiner);
    if (rc != mpi::kSuccess) return false;
    if (!large) e.ints = ints, e.addresses = addresses, e.types = types;
    e.combiner = mpi::combiner_of(combiner);
    return true;
}

template <class Numbers>
auto room_for(Numbers& numbers, mpi::Count count) {
    numbers.resize(static_cast<std::size_t>(count));
    return numbers.data();
}

void read_contents(mpi::Datatype type, const Envelope& e, Contents& c) {
    c.combiner = e.combiner;
    std::vector<int> ints;
    int* const some = room_for(ints, e.ints);
    mpi::Aint* const addresses = room_for(c.addresses, e.addresses);
    c.types.resize(static_cast<std::size_t>(e.types));
    void* const types = c.types.data();
    if (e.large != 0) {
        mpi::Count* const large = room_for(c.counts, e.large);
        mpi::lib().Type_get_contents_c(type, e.ints, e.addresses, e.large, e.types, some, addresses, large,
                                       types);
        return;
    }
    mpi::lib().Type_get_contents(type, static_cast<int>(e.ints), static_cast<int>(e.addresses),
                                 static_cast<int>(e.types), some, addresses, types);
    c.counts.assign(ints.begin(), ints.end());
}

bool is_named(mpi::Combiner combiner) {
    return combiner == mpi::Combiner::named || combiner == mpi::Combiner::f90_real ||
           combiner == mpi::Combiner::f90_complex || combiner == mpi::Combiner::f90_integer;
}

Run run_of(mpi::Datatype type);

void release(const Contents& contents) {
    for (std::size_t i = 0; i < contents.types.size(); ++i) {
        mpi::Datatype type = contents.types[i];
        Envelope envelope;
        if (envelope_of(type, envelope) && is_named(envelope.combiner)) continue;
        mpi::lib().Type_free(&type);
    }
}

// The predefined pair types have holes in their elements, all others are dense.
Run measured(mpi::Datatype type) {
    mpi::Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
    mpi::lib().Type_size_x(type, &size);
    mpi::lib().Type_get_extent_x(type, &lower, &extent);
    mpi::lib().Type_get_true_extent_x(type, &true_lower, &true_extent);
    return {.ok = size == true_extent,
            .empty = size == 0,
            .offset_bytes = true_lower,
            .bytes = size,
            .extent_bytes = extent};
}

// `count` pieces of `length(i)` elements of `old` at `displacement(i)` bytes.
template <class Length, class Displacement>
Run join(const Run& old, mpi::Count count, Length length, Displacement displacement) {
    Run run;
    for (mpi::Count i = 0; i < count && run.ok; ++i) run.append(old, displacement(i), length(i));
    return run;
}

// The same for pieces of one length, in even strides: as quick for billions.
Run join_even(const Run& old, mpi::Count count, mpi::Count length, mpi::Count stride_bytes) {
    Run run;
    if (count == 0) return run;
    run.append(old, 0, length);
    if (!run.empty && count > 1 && stride_bytes != run.bytes) run.ok = false;
    run.bytes *= count;
    return run;
}

Run run_of_struct(const Contents& c) {
    Run run;
    for (mpi::Count i = 0; i < c.counts[0] && run.ok; ++i)
        run.append(run_of(c.types[static_cast<std::size_t>(i)]), c.bytes_at(i, 1 + c.counts[0]),
                   c.count(1 + i));
    return run;
}

// A subarray lists its elements in the order of memory: dense elements without a hole between them are one
// run.
Run run_of_subarray(mpi::Datatype type, const Run& old) {
    Run run = measured(type);
    run.ok = run.ok && old.ok && old.bytes == old.extent_bytes;
    return run;
}

Run run_of_contents(mpi::Datatype type, const Contents& c) {
    if (c.combiner == mpi::Combiner::structure) return run_of_struct(c);
    const Run old = run_of(c.types[0]);
    auto n = [&](mpi::Count i) { return c.count(i); };
    auto bytes = [&](mpi::Count elements) { return elements * old.extent_bytes; };
    switch (c.combiner) {
        case mpi::Combiner::dup:
        case mpi::Combiner::resized:
            return old;
        case mpi::Combiner::contiguous:
            return join_even(old, 1, n(0), 0);
        case mpi::Combiner::vector:
            return join_even(old, n(0), n(1), bytes(n(2)));
        case mpi::Combiner::hvector:
            return join_even(old, n(0), n(1), c.bytes_at(0, 2));
        case mpi::Combiner::indexed:
            return join(
                old, n(0), [&](auto i) { return n(1 + i); }, [&](auto i) { return bytes(n(1 + n(0) + i)); });
        case mpi::Combiner::hindexed:
            return join(
                old, n(0), [&](auto i) { return n(1 + i); }, [&](auto i) { return c.bytes_at(i, 1 + n(0)); });
        case mpi::Combiner::indexed_block:
            return join(
                old, n(0), [&](auto) { return n(1); }, [&](auto i) { return bytes(n(2 + i)); });
        case mpi::Combiner::hindexed_block:
            return join(
                old, n(0), [&](auto) { return n(1); }, [&](auto i) { return c.bytes_at(i, 2); });
        case mpi::Combiner::subarray:
            return run_of_subarray(type, old);
        default:
            return {.ok = false};
    }
}

Run run_of(mpi::Datatype type) {
    Envelope envelope;
    Contents c;
    Run whole = measured(type);
    if (!envelope_of(type, envelope)) return whole.ok = false, whole;
    if (is_named(envelope.combiner)) return whole;
    read_contents(type, envelope, c);
    Run run = !c.types.empty() ? run_of_contents(type, c) : Run{.ok = false};
    release(c);
    // The run that was read must be the one that the library measures, however it tells of large counts.
    run.ok = run.ok && whole.ok && run.bytes == whole.bytes &&
             (run.empty || run.offset_bytes == whole.offset_bytes);
    // Bounds come from the library: it knows what resizing and padding did to them, and where data begin that
    // are no run.
    run.extent_bytes = whole.extent_bytes;
    run.offset_bytes = whole.offset_bytes;
    run.bytes = whole.bytes;
    return run;
}

TypeFacts read_facts(mpi::Datatype type) {
    Run run = run_of(type);
    return {.size_bytes = static_cast<std::uint64_t>(run.bytes),
            .extent_bytes = run.extent_bytes,
            .offset_bytes = run.bytes == 0 ? 0 : run.offset_bytes,
            .run = run.ok,
            .valid = true};
}

// Goes up when a remembered type is freed.
std::atomic<std::uint64_t> g_generation{1};

int delete_facts(mpi::Datatype, int, void* value, void*) {
    delete static_cast<TypeFacts*>(value);
    g_generation.fetch_add(1, std::memory_order_release);  // pairs with the acquire in facts_of()
    return mpi::kSuccess;
}

int copy_nothing(mpi::Datatype, int, void*, void*, void*, int* flag) {
    *flag = 0;
    return mpi::kSuccess;
}

int keyval() {
    static const int key = [] {
        int made = mpi::lib().constants.keyval_invalid;
        mpi::lib().Type_create_keyval(copy_nothing, delete_facts, &made, nullptr);
        return made;
    }();
    return key;
}

// Packing nothing of an uncommitted type is an error, which our own communicator returns.
bool is_committed(mpi::Datatype type) {
    mpi::Comm own = mpi::own_comm();
    if (own == mpi::lib().comm_null) return true;
    char target = 0, source = 0;
    int position = 0;
    return mpi::lib().Pack(&source, 0, type, &target, 0, &position, own) == mpi::kSuccess;
}

// Two threads may meet a type for the first time at once: setting its attribute again would free what the
// other reads.
std::mutex& attribute_lock() {
    static auto* lock = new std::mutex;
    return *lock;
}

TypeFacts find_or_read(mpi::Datatype type) {
    if (type == mpi::lib().datatype_null) return {};
    // Asked first: a handle of no type is an error there, too, and no error handler of the program hears of it.
    if (!is_committed(type)) return {};
    Envelope envelope;
    if (envelope_of(type, envelope) && is_named(envelope.combiner)) return read_facts(type);
    std::lock_guard lock(attribute_lock());
    void* value = nullptr;
    int found = 0;
    mpi::lib().Type_get_attr(type, keyval(), &value, &found);
    if (!found) {
        value = new TypeFacts(read_facts(type));
        mpi::lib().Type_set_attr(type, keyval(), value);
    }
    return *static_cast<TypeFacts*>(value);
}

struct Remembered {
    mpi::Datatype type;
    std::uint64_t generation;
    TypeFacts facts;
};

}  // namespace

std::uint64_t type_generation() { return g_generation.load(std::memory_order_acquire); }

TypeFacts facts_of(mpi::Datatype type) {
    constexpr std::size_t kEntries = 16;
    auto& remembered = base::of_thread<std::array<Remembered, kEntries>, Remembered>();
    std::uint64_t generation = type_generation();
    auto key = static_cast<std::uint64_t>(type.bits);
    Remembered& entry = remembered[(key >> 4 ^ key ^ key >> 8) % kEntries];
    if (entry.type == type && entry.generation == generation) return entry.facts;
    TypeFacts facts = find_or_read(type);
    if (facts.valid) entry = {type, generation, facts};  // an invalid type may become valid
    return facts;
}

}  // namespace coco::dispatch
