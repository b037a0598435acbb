// SPDX-License-Identifier: BSD-3-Clause
//
// The arguments of an intercepted call, as the program gave them: one form for int and large counts.
#pragma once
#include "base/index.h"
#include "mpi/handles.h"

#include <cstdint>

#include "algorithms/algorithm.h"

namespace coco::dispatch {

// An array of counts or displacements, in any of MPI's integer widths.
class Numbers {
  public:
    Numbers() = default;
    Numbers(const int* values) : values_(values), wide_(false) {}
    Numbers(const std::int64_t* values) : values_(values), wide_(true) {}
    Numbers(const long long* values) : values_(values), wide_(true) {}

    std::int64_t operator[](std::int32_t i) const {
        return wide_ ? static_cast<const std::int64_t*>(values_)[i] : static_cast<const int*>(values_)[i];
    }
    explicit operator bool() const { return values_ != nullptr; }
    // Whether both are the one array.
    bool is(const Numbers& other) const { return values_ == other.values_; }
    // The array as it is, for loops that ask for its width once: one of the two is null.
    const int* narrow() const { return wide_ ? nullptr : static_cast<const int*>(values_); }
    const std::int64_t* wide() const { return wide_ ? static_cast<const std::int64_t*>(values_) : nullptr; }

  private:
    const void* values_ = nullptr;
    bool wide_ = false;
};

// An array of datatypes, as the program has it in memory; may be none.
class Types {
  public:
    Types() = default;
    explicit Types(const void* array) : array_(array) {}
    mpi::Datatype operator[](std::int32_t i) const {
        return mpi::load<mpi::Datatype>(array_, base::index(i));
    }
    const void* array() const { return array_; }
    friend bool operator==(Types, Types) = default;
    friend bool operator==(Types types, std::nullptr_t) { return types.array_ == nullptr; }

  private:
    const void* array_ = nullptr;
};

// One buffer's arguments. v and w forms have counts and displacements, w has types of its own for each block.
struct BufferArgs {
    const void* buffer = nullptr;
    std::int64_t count = 0;
    mpi::Datatype type{};
    Numbers counts = {};
    Numbers displacements = {};
    Types types = {};
};

struct Args {
    algorithms::Collective collective;
    BufferArgs send = {};  // bcast: unused
    BufferArgs recv = {};  // bcast: the buffer
    int root = 0;
    mpi::Comm comm;
};

}  // namespace coco::dispatch
