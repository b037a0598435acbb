// SPDX-License-Identifier: BSD-3-Clause
//
// The C++ side of the malloc door: every replaceable operator, so that new and delete meet the same heap
// whatever the program's own C++ library does.
#include <new>

#include "heap/heap.h"

#define COCO_OPERATOR __attribute__((visibility("default")))

namespace {

constexpr std::size_t kUnaligned = 0;

void* try_make(std::size_t bytes, std::size_t alignment) {
    return alignment == kUnaligned ? coco::heap::allocate(bytes)
                                   : coco::heap::allocate_aligned(alignment, bytes);
}

// As the standard says: call the new handler until there is memory or no handler.
void* make(std::size_t bytes, std::size_t alignment = kUnaligned) {
    for (;;) {
        if (void* block = try_make(bytes, alignment)) return block;
        std::new_handler handler = std::get_new_handler();
        if (handler == nullptr) throw std::bad_alloc();
        handler();
    }
}

void* make_or_null(std::size_t bytes, std::size_t alignment = kUnaligned) noexcept {
    try {
        return make(bytes, alignment);
    } catch (...) {
        return nullptr;
    }
}

std::size_t number(std::align_val_t alignment) { return static_cast<std::size_t>(alignment); }
void drop(void* block) noexcept { coco::heap::release(block); }

}  // namespace

using std::align_val_t, std::nothrow_t, std::size_t;

COCO_OPERATOR void* operator new(size_t n) { return make(n); }
COCO_OPERATOR void* operator new[](size_t n) { return make(n); }
COCO_OPERATOR void* operator new(size_t n, align_val_t a) { return make(n, number(a)); }
COCO_OPERATOR void* operator new[](size_t n, align_val_t a) { return make(n, number(a)); }
COCO_OPERATOR void* operator new(size_t n, const nothrow_t&) noexcept { return make_or_null(n); }
COCO_OPERATOR void* operator new[](size_t n, const nothrow_t&) noexcept { return make_or_null(n); }
COCO_OPERATOR void* operator new(size_t n, align_val_t a, const nothrow_t&) noexcept {
    return make_or_null(n, number(a));
}
COCO_OPERATOR void* operator new[](size_t n, align_val_t a, const nothrow_t&) noexcept {
    return make_or_null(n, number(a));
}
COCO_OPERATOR void operator delete(void* p) noexcept { drop(p); }
COCO_OPERATOR void operator delete[](void* p) noexcept { drop(p); }
COCO_OPERATOR void operator delete(void* p, size_t) noexcept { drop(p); }
COCO_OPERATOR void operator delete[](void* p, size_t) noexcept { drop(p); }
COCO_OPERATOR void operator delete(void* p, align_val_t) noexcept { drop(p); }
COCO_OPERATOR void operator delete[](void* p, align_val_t) noexcept { drop(p); }
COCO_OPERATOR void operator delete(void* p, size_t, align_val_t) noexcept { drop(p); }
COCO_OPERATOR void operator delete[](void* p, size_t, align_val_t) noexcept { drop(p); }
COCO_OPERATOR void operator delete(void* p, const nothrow_t&) noexcept { drop(p); }
COCO_OPERATOR void operator delete[](void* p, const nothrow_t&) noexcept { drop(p); }
COCO_OPERATOR void operator delete(void* p, align_val_t, const nothrow_t&) noexcept { drop(p); }
COCO_OPERATOR void operator delete[](void* p, align_val_t, const nothrow_t&) noexcept { drop(p); }
