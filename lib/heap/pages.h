// SPDX-License-Identifier: BSD-3-Clause
//
// The pages of a range of memory. Inline arithmetic; thread safety: any thread. Never fails.
#pragma once
#include <cstddef>
#include <cstdint>

#include "os/cpu.h"

namespace coco::heap {

// The begin of the page in which an address lies.
inline std::byte* page_of(const void* address) {
    auto number = reinterpret_cast<std::uintptr_t>(address);
    return reinterpret_cast<std::byte*>(number & ~(os::page_bytes() - 1));
}

// The pages that lie within a range as a whole; begin >= end: none.
struct Inner {
    std::byte* begin;
    std::byte* end;
};
inline Inner inner_of(const void* address, std::uint64_t bytes) {
    const auto* from = static_cast<const std::byte*>(address);
    return {page_of(from + os::page_bytes() - 1), page_of(from + bytes)};
}

}  // namespace coco::heap
