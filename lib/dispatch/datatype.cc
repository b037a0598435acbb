// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/datatype.h"

#include <array>
#include <mutex>
#include <vector>

#include "base/of_thread.h"
#include "mpi/library.h"
#include "mpi/progress.h"

namespace coco::dispatch {

std::atomic<std::uint64_t> g_type_generation{1};

namespace {

using blocks::Layout;

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
    std::vector<int> ints;  // of subarrays made with large counts: the number of dimensions, and the order
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
    int* const some = room_for(c.ints, e.ints);
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
    c.counts.assign(c.ints.begin(), c.ints.end());
}

bool is_named(mpi::Combiner combiner) {
    return combiner == mpi::Combiner::named || combiner == mpi::Combiner::f90_real ||
           combiner == mpi::Combiner::f90_complex || combiner == mpi::Combiner::f90_integer;
}

// Of no more than so many pieces.
Layout layout_of_type(mpi::Datatype type, std::size_t pieces_max);

void release(const Contents& contents) {
    for (std::size_t i = 0; i < contents.types.size(); ++i) {
        mpi::Datatype type = contents.types[i];
        Envelope envelope;
        if (envelope_of(type, envelope) && is_named(envelope.combiner)) continue;
        mpi::lib().Type_free(&type);
    }
}

// A type as the library measures it.
struct Measures {
    mpi::Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
};

Measures measured(mpi::Datatype type) {
    Measures m;
    mpi::lib().Type_size_x(type, &m.size);
    mpi::lib().Type_get_extent_x(type, &m.lower, &m.extent);
    mpi::lib().Type_get_true_extent_x(type, &m.true_lower, &m.true_extent);
    return m;
}

// One element of a type that others are made of.
struct Element {
    Layout layout;
    std::int64_t extent_bytes;

    // So many of them, from a displacement on.
    Layout some(mpi::Count count, std::int64_t displacement_bytes) const {
        Layout made = layout;
        made.repeat(count, extent_bytes);
        made.shift(displacement_bytes);
        return made;
    }
};

Element element_of(mpi::Datatype type, std::size_t pieces_max) {
    return {layout_of_type(type, pieces_max), measured(type).extent};
}

// `count` pieces of `length(i)` elements at `displacement(i)` bytes.
template <class Length, class Displacement>
Layout join(const Element& old, mpi::Count count, Length length, Displacement displacement) {
    Layout made;
    for (mpi::Count i = 0; i < count && made.is_valid(); ++i)
        made.append(old.some(length(i), displacement(i)));
    return made;
}

// The same for pieces of one length, in even strides: as quick for billions.
Layout join_even(const Element& old, mpi::Count count, mpi::Count length, std::int64_t stride_bytes) {
    Layout made = old.some(length, 0);
    made.repeat(count, stride_bytes);
    return made;
}

Layout layout_of_struct(const Contents& c, std::size_t pieces_max) {
    Layout made;
    for (mpi::Count i = 0; i < c.counts[0] && made.is_valid(); ++i)
        made.append(element_of(c.types[static_cast<std::size_t>(i)], pieces_max)
                        .some(c.count(1 + i), c.bytes_at(i, 1 + c.counts[0])));
    return made;
}

// Counts: the dimensions, the sizes of the array, of its part, where that begins, and the order. Where the type was made
// with large counts, the first and the last stand by themselves.
Layout layout_of_subarray(const Element& old, const Contents& c) {
    const bool is_large = c.ints.size() == 2;
    const mpi::Count first = is_large ? 0 : 1, dimensions = is_large ? c.ints[0] : c.count(0);
    if (static_cast<mpi::Count>(c.counts.size()) != 3 * dimensions + 2 * first) return Layout::none();
    const mpi::Count order = is_large ? c.ints[1] : c.count(1 + 3 * dimensions);
    const bool is_fortran = order == mpi::lib().constants.order_fortran;
    if (!is_fortran && order != mpi::lib().constants.order_c) return Layout::none();
    Layout made = old.layout;
    std::int64_t stride_bytes = old.extent_bytes;
    for (mpi::Count i = 0; i < dimensions; ++i) {
        const mpi::Count d = is_fortran ? i : dimensions - 1 - i;
        made.repeat(c.count(first + dimensions + d), stride_bytes);
        made.shift(c.count(first + 2 * dimensions + d) * stride_bytes);
        stride_bytes *= c.count(first + d);
    }
    return made;
}

Layout layout_of_contents(const Contents& c, std::size_t pieces_max) {
    if (c.combiner == mpi::Combiner::structure) return layout_of_struct(c, pieces_max);
    const Element old = element_of(c.types[0], pieces_max);
    auto n = [&](mpi::Count i) { return c.count(i); };
    auto bytes = [&](mpi::Count elements) { return elements * old.extent_bytes; };
    switch (c.combiner) {
        case mpi::Combiner::dup:
        case mpi::Combiner::resized:
            return old.layout;
        case mpi::Combiner::contiguous:
            return old.some(n(0), 0);
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
            return layout_of_subarray(old, c);
        default:
            return Layout::none();
    }
}

// The predefined pair types have holes in their elements, all others are dense.
Layout layout_of_named(const Measures& m, std::size_t pieces_max) {
    if (m.size != m.true_extent) return Layout::none();
    return Layout::run(m.true_lower, static_cast<std::uint64_t>(m.size)).bounded(pieces_max);
}

// The layout that was read must be the one that the library measures, however it tells of large counts.
bool agrees(const Layout& layout, const Measures& m) {
    if (!layout.is_valid() || layout.bytes() != static_cast<std::uint64_t>(m.size)) return false;
    const Layout::Bounds bounds = layout.bounds();
    return m.size == 0 || (bounds.low == m.true_lower && bounds.high == m.true_lower + m.true_extent);
}

Layout layout_of_type(mpi::Datatype type, std::size_t pieces_max) {
    Envelope envelope;
    if (!envelope_of(type, envelope)) return Layout::none();
    if (is_named(envelope.combiner)) return layout_of_named(measured(type), pieces_max);
    Contents c;
    read_contents(type, envelope, c);
    Layout layout = !c.types.empty() ? layout_of_contents(c, pieces_max) : Layout::none();
    release(c);
    return agrees(layout, measured(type)) ? layout : Layout::none();
}

// What is known of a type.
struct Known {
    TypeFacts facts;
    std::shared_ptr<const TypeLayout> layout;  // null: it has none, or no bytes
    bool is_layout_known;
};
// One is enough to tell whether a type is a run; a large exchange reads the others, if it is not.
constexpr std::size_t kFirstPieces = 1;

// Bounds come from the library: it knows what resizing and padding did to them, and where data begin that are no run.
Known read_type(mpi::Datatype type, std::size_t pieces_max) {
    Layout layout = layout_of_type(type, pieces_max);
    const Measures m = measured(type);
    Known known{.facts = {.size_bytes = static_cast<std::uint64_t>(m.size),
                          .extent_bytes = m.extent,
                          .offset_bytes = m.size == 0 ? 0 : m.true_lower,
                          .run = layout.is_run(),
                          .valid = true},
                .layout = nullptr,
                .is_layout_known = layout.is_valid() || pieces_max == Layout::kPiecesMax};
    layout.shift(-m.true_lower);
    if (layout.is_valid() && m.size != 0)
        known.layout = std::make_shared<const TypeLayout>(TypeLayout{layout.words(), m.true_extent});
    return known;
}

int delete_facts(mpi::Datatype, int, void* value, void*) {
    delete static_cast<Known*>(value);
    g_type_generation.fetch_add(1, std::memory_order_release);  // pairs with the acquire in type_generation()
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

// The attribute of a type that is not predefined, made if there is none.
Known known_of(mpi::Datatype type, bool with_layout) {
    std::lock_guard lock(attribute_lock());
    void* value = nullptr;
    int found = 0;
    mpi::lib().Type_get_attr(type, keyval(), &value, &found);
    if (!found) {
        value = new Known(read_type(type, kFirstPieces));
        mpi::lib().Type_set_attr(type, keyval(), value);
    }
    auto* known = static_cast<Known*>(value);
    if (with_layout && !known->is_layout_known) *known = read_type(type, Layout::kPiecesMax);
    return *known;
}

bool is_predefined(mpi::Datatype type) {
    Envelope envelope;
    return envelope_of(type, envelope) && is_named(envelope.combiner);
}

TypeFacts find_or_read(mpi::Datatype type) {
    if (type == mpi::lib().datatype_null) return {};
    // Asked first: a handle of no type is an error there, too, and no error handler of the program hears of it.
    if (!is_committed(type)) return {};
    return is_predefined(type) ? read_type(type, kFirstPieces).facts : known_of(type, false).facts;
}

struct Remembered {
    mpi::Datatype type;
    std::uint64_t generation;
    TypeFacts facts;
};

}  // namespace

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

std::shared_ptr<const TypeLayout> layout_of(mpi::Datatype type) {
    return is_predefined(type) ? nullptr : known_of(type, true).layout;
}

}  // namespace coco::dispatch
