// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/datatype.h"

#include <atomic>
#include <mutex>
#include <vector>

#include "comm/mpi_table.h"
#include "comm/progress.h"

namespace coco::dispatch {
namespace {

using comm::mpi;

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

struct Contents {
    int combiner = 0;
    std::vector<int> ints;
    std::vector<MPI_Aint> addresses;
    std::vector<MPI_Datatype> types;
};

// Returns: false if the type cannot be looked into (made with large counts).
bool envelope_of(MPI_Datatype type, int& ints, int& addresses, int& types, int& combiner) {
#if MPI_VERSION >= 4
    if (mpi().Type_get_envelope_c != nullptr) {
        MPI_Count i = 0, a = 0, large = 0, t = 0;
        mpi().Type_get_envelope_c(type, &i, &a, &large, &t, &combiner);
        if (large != 0) return false;
    }
#endif
    return mpi().Type_get_envelope(type, &ints, &addresses, &types, &combiner) == MPI_SUCCESS;
}

bool is_named(int combiner) {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

Run run_of(MPI_Datatype type);

void release(const Contents& contents) {
    for (MPI_Datatype type : contents.types) {
        int ints, addresses, types, combiner;
        if (envelope_of(type, ints, addresses, types, combiner) && is_named(combiner)) continue;
        mpi().Type_free(&type);
    }
}

// The predefined pair types have holes in their elements, all others are dense.
Run measured(MPI_Datatype type) {
    MPI_Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
    mpi().Type_size_x(type, &size);
    mpi().Type_get_extent_x(type, &lower, &extent);
    mpi().Type_get_true_extent_x(type, &true_lower, &true_extent);
    return {.ok = size == true_extent,
            .empty = size == 0,
            .offset_bytes = true_lower,
            .bytes = size,
            .extent_bytes = extent};
}

// `count` pieces of `length(i)` elements of `old` at `displacement(i)` bytes.
template <class Length, class Displacement>
Run join(const Run& old, int count, Length length, Displacement displacement) {
    Run run;
    for (int i = 0; i < count && run.ok; ++i) run.append(old, displacement(i), length(i));
    return run;
}

Run run_of_struct(const Contents& c) {
    Run run;
    for (int i = 0; i < c.ints[0] && run.ok; ++i)
        run.append(run_of(c.types[i]), c.addresses[i], c.ints[1 + i]);
    return run;
}

// A subarray lists its elements in the order of memory: dense elements without a hole between them are one
// run.
Run run_of_subarray(MPI_Datatype type, const Run& old) {
    Run run = measured(type);
    run.ok = run.ok && old.ok && old.bytes == old.extent_bytes;
    return run;
}

Run run_of_contents(MPI_Datatype type, const Contents& c) {
    if (c.combiner == MPI_COMBINER_STRUCT) return run_of_struct(c);
    const Run old = run_of(c.types[0]);
    const auto& n = c.ints;
    auto bytes = [&](int elements) { return elements * old.extent_bytes; };
    switch (c.combiner) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED:
            return old;
        case MPI_COMBINER_CONTIGUOUS:
            return join(
                old, 1, [&](int) { return n[0]; }, [](int) { return 0; });
        case MPI_COMBINER_VECTOR:
            return join(
                old, n[0], [&](int) { return n[1]; }, [&](int i) { return i * bytes(n[2]); });
        case MPI_COMBINER_HVECTOR:
            return join(
                old, n[0], [&](int) { return n[1]; }, [&](int i) { return i * c.addresses[0]; });
        case MPI_COMBINER_INDEXED:
            return join(
                old, n[0], [&](int i) { return n[1 + i]; }, [&](int i) { return bytes(n[1 + n[0] + i]); });
        case MPI_COMBINER_HINDEXED:
            return join(
                old, n[0], [&](int i) { return n[1 + i]; }, [&](int i) { return c.addresses[i]; });
        case MPI_COMBINER_INDEXED_BLOCK:
            return join(
                old, n[0], [&](int) { return n[1]; }, [&](int i) { return bytes(n[2 + i]); });
        case MPI_COMBINER_HINDEXED_BLOCK:
            return join(
                old, n[0], [&](int) { return n[1]; }, [&](int i) { return c.addresses[i]; });
        case MPI_COMBINER_SUBARRAY:
            return run_of_subarray(type, old);
        default:
            return {.ok = false};
    }
}

Run run_of(MPI_Datatype type) {
    int ints = 0, addresses = 0, types = 0;
    Contents c;
    Run whole = measured(type);
    if (!envelope_of(type, ints, addresses, types, c.combiner)) return whole.ok = false, whole;
    if (is_named(c.combiner)) return whole;
    c.ints.resize(static_cast<std::size_t>(ints));
    c.addresses.resize(static_cast<std::size_t>(addresses));
    c.types.resize(static_cast<std::size_t>(types));
    mpi().Type_get_contents(type, ints, addresses, types, c.ints.data(), c.addresses.data(), c.types.data());
    Run run = types > 0 ? run_of_contents(type, c) : Run{.ok = false};
    release(c);
    // Bounds come from the library: it knows what resizing and padding did to them.
    run.extent_bytes = whole.extent_bytes;
    run.bytes = whole.bytes;
    return run;
}

TypeFacts read_facts(MPI_Datatype type) {
    Run run = run_of(type);
    return {.size_bytes = static_cast<std::uint64_t>(run.bytes),
            .extent_bytes = run.extent_bytes,
            .offset_bytes = run.bytes == 0 ? 0 : run.offset_bytes,
            .run = run.ok,
            .valid = true};
}

// Goes up when a remembered type is freed.
std::atomic<std::uint64_t> g_generation{1};

int delete_facts(MPI_Datatype, int, void* value, void*) {
    delete static_cast<TypeFacts*>(value);
    g_generation.fetch_add(1, std::memory_order_release);  // pairs with the acquire in facts_of()
    return MPI_SUCCESS;
}

int copy_nothing(MPI_Datatype, int, void*, void*, void*, int* flag) {
    *flag = 0;
    return MPI_SUCCESS;
}

int keyval() {
    static const int key = [] {
        int made = MPI_KEYVAL_INVALID;
        mpi().Type_create_keyval(copy_nothing, delete_facts, &made, nullptr);
        return made;
    }();
    return key;
}

// Packing nothing of an uncommitted type is an error, which our own communicator returns.
bool is_committed(MPI_Datatype type) {
    MPI_Comm own = comm::own_comm();
    if (own == mpi().comm_null) return true;
    char target = 0, source = 0;
    int position = 0;
    return mpi().Pack(&source, 0, type, &target, 0, &position, own) == MPI_SUCCESS;
}

// Two threads may meet a type for the first time at once: setting its attribute again would free what the
// other reads.
std::mutex& attribute_lock() {
    static auto* lock = new std::mutex;
    return *lock;
}

TypeFacts find_or_read(MPI_Datatype type) {
    if (type == mpi().datatype_null) return {};
    int ints, addresses, types, combiner = 0;
    bool named = envelope_of(type, ints, addresses, types, combiner) && is_named(combiner);
    if (named) return read_facts(type);
    if (!is_committed(type)) return {};
    std::lock_guard lock(attribute_lock());
    void* value = nullptr;
    int found = 0;
    mpi().Type_get_attr(type, keyval(), &value, &found);
    if (!found) {
        value = new TypeFacts(read_facts(type));
        mpi().Type_set_attr(type, keyval(), value);
    }
    return *static_cast<TypeFacts*>(value);
}

struct Remembered {
    MPI_Datatype type;
    std::uint64_t generation;
    TypeFacts facts;
};

}  // namespace

std::uint64_t type_generation() { return g_generation.load(std::memory_order_acquire); }

TypeFacts facts_of(MPI_Datatype type) {
    constexpr std::size_t kEntries = 16;
    thread_local Remembered remembered[kEntries];
    std::uint64_t generation = type_generation();
    auto key = static_cast<std::uint64_t>((std::uintptr_t)type);
    Remembered& entry = remembered[(key >> 4 ^ key ^ key >> 8) % kEntries];
    if (entry.type == type && entry.generation == generation) return entry.facts;
    TypeFacts facts = find_or_read(type);
    if (facts.valid) entry = {type, generation, facts};  // an invalid type may become valid
    return facts;
}

}  // namespace coco::dispatch
