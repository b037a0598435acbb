// SPDX-License-Identifier: BSD-3-Clause
//
// MPI's types as all families have them in registers. A handle is an int in the MPICH family and a pointer in
// the others: here it is as wide as a register, and a structure of one word, which every 64-bit ABI passes
// like the word itself. In memory a handle is as wide as its family makes it (Family::handle_bytes), so that
// arrays of handles and handles behind a program's pointer are only touched by the functions of this file.
// Thread safety: plain values.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace coco::mpi {

// A handle that was loaded or narrowed has zeros above its family's width. The library may write only the
// lower half of a handle, and may read no more of it: the rest is zero from the start.
template <class Kind>
struct Handle {
    std::uintptr_t bits = 0;
    friend bool operator==(Handle, Handle) = default;
};
static_assert(std::endian::native == std::endian::little, "the lower half of a handle must come first");
static_assert(sizeof(void*) == 8 && sizeof(Handle<void>) == sizeof(void*));

using Comm = Handle<struct CommKind>;
using Datatype = Handle<struct DatatypeKind>;
using Errhandler = Handle<struct ErrhandlerKind>;
using Group = Handle<struct GroupKind>;
using Info = Handle<struct InfoKind>;
using Op = Handle<struct OpKind>;
using Request = Handle<struct RequestKind>;
using Session = Handle<struct SessionKind>;

using Aint = std::intptr_t;
using Count = std::int64_t;

inline constexpr int kSuccess = 0;  // in every family

// The width of handles in memory, in bytes, and the bits of a register that belong to one. Set once, before
// the first MPI library is in use (mpi/library.h); until then those of pointers.
extern std::size_t g_handle_bytes;
extern std::uintptr_t g_handle_mask;

// The one place where a handle that a program passed in a register loses the bits that are not its own.
template <class H>
H narrow(H handle) {
    return {handle.bits & g_handle_mask};
}

// The `index`-th handle of an array of a program's or of the library's.
template <class H>
H load(const void* array, std::size_t index = 0) {
    H handle;
    std::memcpy(&handle.bits, static_cast<const std::byte*>(array) + index * g_handle_bytes, g_handle_bytes);
    return handle;
}

// An array of handles as the library wants it.
template <class H>
class Handles {
  public:
    Handles() = default;
    Handles(std::size_t count, H value) {
        resize(count);
        for (std::size_t i = 0; i < count; ++i) store(i, value);
    }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    void* data() { return words_.data(); }
    void* at(std::size_t index) {
        COCO_CHECK_DEAR(index <= size_, "a handle is in its array");
        return bytes() + index * g_handle_bytes;
    }
    H operator[](std::size_t index) const {
        COCO_CHECK_DEAR(index < size_, "a handle is in its array");
        return load<H>(words_.data(), index);
    }
    void store(std::size_t index, H value) {
        COCO_CHECK_DEAR(index < size_, "a handle is in its array");
        std::memcpy(at(index), &value.bits, g_handle_bytes);
    }
    void resize(std::size_t count) {
        words_.resize((count * g_handle_bytes + sizeof(std::uintptr_t) - 1) / sizeof(std::uintptr_t));
        size_ = count;
    }
    // Where the library puts one more handle.
    void* add() {
        resize(size_ + 1);
        return at(size_ - 1);
    }
    void clear() { resize(0); }
    void erase_first(std::size_t count) {
        COCO_CHECK_DEAR(count <= size_, "handles that are erased are in their array");
        std::memmove(words_.data(), at(count), (size_ - count) * g_handle_bytes);
        resize(size_ - count);
    }

  private:
    std::byte* bytes() { return reinterpret_cast<std::byte*>(words_.data()); }
    std::vector<std::uintptr_t> words_;  // so that handles of any width are aligned
    std::size_t size_ = 0;
};

using Requests = Handles<Request>;

}  // namespace coco::mpi
