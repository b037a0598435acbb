// SPDX-License-Identifier: BSD-3-Clause
//
// The C++ side of the malloc door: every replaceable operator, so that new and delete meet the same heap
// whatever the program's own C++ library does. Where there is no memory that library takes over: the new
// handler and the exceptions in flight are its, not those of the static copy that is inside of libcoco.so.
#include <dlfcn.h>

#include <initializer_list>
#include <new>
#include <utility>

#include "heap/heap.h"

#define COCO_OPERATOR __attribute__((visibility("default")))

namespace {

constexpr std::size_t kUnaligned = 0;

void* try_make(std::size_t bytes, std::size_t alignment) {
    return alignment == kUnaligned ? coco::heap::allocate(bytes)
                                   : coco::heap::allocate_aligned(alignment, bytes);
}

// The program's C++ library's own operator, which asks our malloc; null in programs that have a static copy
// (and so operators of their own) or none.
void* library_operator(const char* name) {
    for (const char* library : {"libstdc++.so.6", "libc++.so.1"})
        if (void* handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY))
            if (void* found = dlsym(handle, name)) return found;
    return nullptr;
}

template <class... Rest>
using Operator = void*(std::size_t, Rest...);

void* make_or_null(std::size_t bytes, std::size_t alignment = kUnaligned) noexcept;

// For a call that no exception may leave. The program's new handler may find memory all the same.
void* make_or_stop(std::size_t bytes, std::size_t alignment) {
    void* block = make_or_null(bytes, alignment);
    if (block == nullptr) coco::heap::stop_undivided(bytes);
    return block;
}

void* make(std::size_t bytes, std::size_t alignment = kUnaligned) {
    if (void* block = try_make(bytes, alignment)) [[likely]]
        return block;
    if (coco::heap::t_undivided != nullptr) return make_or_stop(bytes, alignment);
    static auto* plain = reinterpret_cast<Operator<>*>(library_operator("_Znwm"));
    static auto* aligned =
        reinterpret_cast<Operator<std::align_val_t>*>(library_operator("_ZnwmSt11align_val_t"));
    if (plain == nullptr || aligned == nullptr) throw std::bad_alloc();
    return alignment == kUnaligned ? plain(bytes) : aligned(bytes, std::align_val_t{alignment});
}

// The library's calls ours again, and catches what its own throws.
void* make_or_null(std::size_t bytes, std::size_t alignment) noexcept {
    if (void* block = try_make(bytes, alignment)) [[likely]]
        return block;
    static auto* plain =
        reinterpret_cast<Operator<const std::nothrow_t&>*>(library_operator("_ZnwmRKSt9nothrow_t"));
    static auto* aligned = reinterpret_cast<Operator<std::align_val_t, const std::nothrow_t&>*>(
        library_operator("_ZnwmSt11align_val_tRKSt9nothrow_t"));
    if (plain == nullptr || aligned == nullptr) return nullptr;
    const char* call = std::exchange(coco::heap::t_undivided, nullptr);
    void* block = alignment == kUnaligned ? plain(bytes, std::nothrow)
                                          : aligned(bytes, std::align_val_t{alignment}, std::nothrow);
    coco::heap::t_undivided = call;
    return block;
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
