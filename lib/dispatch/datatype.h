// SPDX-License-Identifier: BSD-3-Clause
//
// The facts of a datatype that we need: its size, its extent, whether an element is one run of bytes in the
// order of its signature, and otherwise its layout. A type that was met some times is kept: they are
// remembered until it is freed. Of others they are read anew in each call. Thread safety: any thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "blocks/layout.h"
#include "mpi/handles.h"

namespace coco::dispatch {

struct TypeFacts {
    std::uint64_t size_bytes = 0;
    std::int64_t extent_bytes = 0;
    // Where the lowest byte of data is, from an element's origin: a lower bound, or an absolute address.
    std::int64_t offset_bytes = 0;
    bool run = false;    // an element is contiguous
    bool valid = false;  // not MPI_DATATYPE_NULL
    // Predefined, or kept: the handle names this type as long as type_generation() stays as it is; else as
    // long as the call.
    bool lasts = false;

    // Whether `count` elements are one run of bytes.
    bool is_dense(std::uint64_t count) const {
        return run && (count <= 1 || extent_bytes == static_cast<std::int64_t>(size_bytes));
    }
};

TypeFacts facts_of(mpi::Datatype type);
// The same for `count` elements that are packed if they are no more than `most_bytes`: of a type with holes
// that is met for the first few times the size alone is read then.
TypeFacts facts_to_pack(mpi::Datatype type, std::int64_t count, std::uint64_t most_bytes);
// Called where a call begins, before types are asked for: what is known of types for the last call only is
// forgotten.
extern constinit thread_local std::uint64_t t_type_call;
inline void begin_call_of_types() { ++t_type_call; }

// The layout of an element, from its lowest byte on.
struct TypeLayout {
    std::vector<std::int64_t> words;
    std::int64_t span_bytes;
};
// Null: a predefined type, one of no bytes, or one too irregular. Whoever has it may use it when the type has
// been freed. Requires: the type is valid.
std::shared_ptr<const TypeLayout> layout_of(mpi::Datatype type);
// A counter that goes up when a kept type is freed: facts kept elsewhere by its handle are stale then.
extern std::atomic<std::uint64_t> g_type_generation;
inline std::uint64_t type_generation() { return g_type_generation.load(std::memory_order_acquire); }

}  // namespace coco::dispatch
