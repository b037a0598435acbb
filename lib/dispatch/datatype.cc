// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/datatype.h"

#include <array>
#include <mutex>
#include <optional>
#include <vector>

#include "base/index.h"
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
    // The counts: ints, or, where the type was made with large counts, these, in the same order, with
    // displacements in bytes behind them instead of in addresses.
    std::vector<mpi::Count> counts;
    std::vector<int> ints;  // of subarrays made with large counts: the number of dimensions, and the order
    std::vector<mpi::Aint> addresses;
    mpi::Handles<mpi::Datatype> types;

    mpi::Count count(mpi::Count i) const { return counts[base::index(i)]; }
    // The i-th displacement. first: the place of the first one among large counts.
    mpi::Count bytes_at(mpi::Count i, mpi::Count first) const {
        return addresses.empty() ? count(first + i) : addresses[base::index(i)];
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
    numbers.resize(base::index(count));
    return numbers.data();
}

void read_contents(mpi::Datatype type, const Envelope& e, Contents& c) {
    c.combiner = e.combiner;
    int* const some = room_for(c.ints, e.ints);
    mpi::Aint* const addresses = room_for(c.addresses, e.addresses);
    c.types.resize(base::index(e.types));
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

bool is_predefined(mpi::Datatype type) {
    Envelope envelope;
    return envelope_of(type, envelope) && is_named(envelope.combiner);
}

// Of no more than so many pieces.
Layout layout_of_type(mpi::Datatype type, std::size_t pieces_max);

void release(const Contents& contents) {
    for (std::size_t i = 0; i < contents.types.size(); ++i) {
        mpi::Datatype type = contents.types[i];
        if (!is_predefined(type)) mpi::lib().Type_free(&type);
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
        made.append(element_of(c.types[base::index(i)], pieces_max)
                        .some(c.count(1 + i), c.bytes_at(i, 1 + c.counts[0])));
    return made;
}

// Counts: the dimensions, the sizes of the array, of its part, where that begins, and the order. Where the
// type was made with large counts, the first and the last stand by themselves.
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
    std::shared_ptr<const TypeLayout> layout =
        nullptr;  // null: it has none, or no bytes, or nobody asked yet
    bool is_layout_known = false;
};

// Whether a type is one run, where a few numbers tell: nothing where they do not. Takes no memory: some
// programs make a type for each call. Of a vector of dense elements that fills its span, the pieces ascend
// unless data begin below its origin.
std::optional<bool> is_run_by_few_numbers(mpi::Datatype type, const Envelope& e, const Measures& m) {
    constexpr int kIntsMost = 3, kAddressesMost = 1;
    if (m.size == 0) return {};
    if (m.size != m.true_extent) return false;
    const bool is_even = e.combiner == mpi::Combiner::contiguous || e.combiner == mpi::Combiner::vector ||
                         e.combiner == mpi::Combiner::hvector;
    if (!is_even || e.large != 0 || e.types != 1 || e.ints > kIntsMost || e.addresses > kAddressesMost)
        return {};
    int ints[kIntsMost];
    mpi::Aint addresses[kAddressesMost];
    std::uintptr_t word = 0;
    mpi::lib().Type_get_contents(type, static_cast<int>(e.ints), static_cast<int>(e.addresses), 1, ints,
                                 addresses, &word);
    auto old = mpi::load<mpi::Datatype>(&word);
    if (!is_predefined(old)) {
        mpi::lib().Type_free(&old);
        return {};
    }
    const TypeFacts element = facts_of(old);
    if (!element.is_dense(2) || element.offset_bytes != 0) return {};
    return m.true_lower >= 0;
}

// Bounds come from the library: it knows what resizing and padding did to them, and where data begin that are
// no run.
TypeFacts read_facts(mpi::Datatype type, const Envelope& envelope) {
    // One piece is enough to tell whether a type is a run; a large exchange reads the others, if it is not.
    constexpr std::size_t kFirstPieces = 1;
    const Measures m = measured(type);
    const std::optional<bool> run = is_run_by_few_numbers(type, envelope, m);
    return {.size_bytes = static_cast<std::uint64_t>(m.size),
            .extent_bytes = m.extent,
            .offset_bytes = m.size == 0 ? 0 : m.true_lower,
            .run = run ? *run : layout_of_type(type, kFirstPieces).is_run(),
            .valid = true,
            .lasts = is_named(envelope.combiner)};
}

std::shared_ptr<const TypeLayout> read_layout(mpi::Datatype type) {
    Layout layout = layout_of_type(type, Layout::kPiecesMax);
    const Measures m = measured(type);
    if (!layout.is_valid() || m.size == 0) return nullptr;
    layout.shift(-m.true_lower);
    return std::make_shared<const TypeLayout>(TypeLayout{layout.words(), m.true_extent});
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

// What a type's attribute says; null if it has none. Requires: attribute_lock() is held.
Known* attribute_of(mpi::Datatype type) {
    void* value = nullptr;
    int found = 0;
    mpi::lib().Type_get_attr(type, keyval(), &value, &found);
    return found ? static_cast<Known*>(value) : nullptr;
}

Known& attribute_or_new(mpi::Datatype type, const TypeFacts& facts) {
    if (Known* known = attribute_of(type); known != nullptr) return *known;
    auto* known = new Known{.facts = facts};
    known->facts.lasts = true;
    mpi::lib().Type_set_attr(type, keyval(), known);
    return *known;
}

// Many programs make a type for one call and free it at once; to keep what is known of it, and to forget
// that, takes longer than to read it. So a type that is met is kept with this probability: one that stays is
// soon kept. Drawn by chance, as programs use types in turns.
bool draws_to_keep() {
    constexpr std::uint32_t kOneOf = 32;
    constinit static thread_local std::uint32_t random = 0;
    random = random * 1664525 + 1013904223;
    return (random >> 16) % kOneOf == 0;
}

TypeFacts find_or_read(mpi::Datatype type, bool keep) {
    if (type == mpi::lib().datatype_null) return {};
    // Asked first: a handle of no type is an error there, too, and no error handler of the program hears of
    // it.
    if (!is_committed(type)) return {};
    Envelope envelope;
    const bool is_of_the_library = envelope_of(type, envelope) && is_named(envelope.combiner);
    if (!is_of_the_library) {
        std::lock_guard lock(attribute_lock());
        if (const Known* known = attribute_of(type); known != nullptr) return known->facts;
    }
    const TypeFacts facts = read_facts(type, envelope);
    if (is_of_the_library || !keep) return facts;
    std::lock_guard lock(attribute_lock());
    return attribute_or_new(type, facts).facts;
}

struct RememberedType {
    mpi::Datatype type;
    std::uint64_t generation;
    std::uint64_t call;  // 0: whatever the call
    TypeFacts facts;

    bool is_of(mpi::Datatype one, std::uint64_t generation_now) const {
        return type == one && generation == generation_now && (call == 0 || call == t_type_call);
    }
};

RememberedType& place_of(mpi::Datatype type) {
    constexpr std::size_t kEntries = 16;
    auto& remembered = base::of_thread<std::array<RememberedType, kEntries>, RememberedType>();
    auto key = static_cast<std::uint64_t>(type.bits);
    return remembered[(key >> 4 ^ key ^ key >> 8) % kEntries];
}

// Requires: the type is in no place.
TypeFacts look_up(mpi::Datatype type, bool keep) {
    const std::uint64_t generation = type_generation();
    const TypeFacts facts = find_or_read(type, keep);
    if (facts.valid)  // an invalid type may become valid
        place_of(type) = {type, generation, facts.lasts ? 0 : t_type_call, facts};
    return facts;
}

// What packing a small block needs, of a type that is not kept: the size alone of one with holes. One without
// must not be packed: MPICH 4.0.2 then goes by a number that it has not set, and leaves bytes out. Not valid
// where more has to be asked for.
TypeFacts facts_of_small(mpi::Datatype type, std::int64_t count, std::uint64_t most_bytes) {
    if (count <= 0 || type == mpi::lib().datatype_null || !is_committed(type)) return {};
    Envelope envelope;
    if (!envelope_of(type, envelope) || is_named(envelope.combiner)) return {};
    mpi::Count size = 0, true_lower = 0, true_extent = 0;
    mpi::lib().Type_size_x(type, &size);
    const auto size_bytes = static_cast<std::uint64_t>(size);
    if (size_bytes == 0 || size_bytes > most_bytes / static_cast<std::uint64_t>(count)) return {};
    mpi::lib().Type_get_true_extent_x(type, &true_lower, &true_extent);
    return size != true_extent ? TypeFacts{.size_bytes = size_bytes, .valid = true}
                               : read_facts(type, envelope);
}

}  // namespace

constinit thread_local std::uint64_t t_type_call = 1;

TypeFacts facts_of(mpi::Datatype type) {
    const RememberedType& place = place_of(type);
    return place.is_of(type, type_generation()) ? place.facts : look_up(type, draws_to_keep());
}

TypeFacts facts_to_pack(mpi::Datatype type, std::int64_t count, std::uint64_t most_bytes) {
    RememberedType& place = place_of(type);
    const std::uint64_t generation = type_generation();
    if (place.is_of(type, generation)) return place.facts;
    const bool keep = draws_to_keep();
    const TypeFacts facts = keep ? TypeFacts{} : facts_of_small(type, count, most_bytes);
    if (!facts.valid) return look_up(type, keep);
    place = {type, generation, t_type_call, facts};
    return facts;
}

std::shared_ptr<const TypeLayout> layout_of(mpi::Datatype type) {
    if (is_predefined(type)) return nullptr;
    const TypeFacts facts = facts_of(type);
    std::lock_guard lock(attribute_lock());
    Known& known = attribute_or_new(type, facts);
    if (!known.is_layout_known) known.layout = read_layout(type);
    known.is_layout_known = true;
    return known.layout;
}

}  // namespace coco::dispatch
