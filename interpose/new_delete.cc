// SPDX-License-Identifier: BSD-3-Clause
//
// The C++ side of the malloc door: every replaceable operator, so that new and delete meet the same heap
// whatever the program's own C++ library does. Where there is no memory that library takes over: the new
// handler and the exceptions in flight are its, not those of the static copy that is inside of libcoco.so.
// Operators that are not ours (operators.h) go to the next definition; where there is none they do what the
// standard's own do: they call the operator that they are based on, and at last malloc and free.
#include <dlfcn.h>

#include <cstdlib>
#include <initializer_list>
#include <new>
#include <utility>

#include "heap/heap.h"
#include "heap/malloc_family.h"
#include "operators.h"

#define COCO_OPERATOR __attribute__((visibility("default")))

namespace {

using namespace coco::interpose;
using coco::heap::t_undivided;
using std::align_val_t, std::nothrow_t, std::size_t;

constexpr size_t kUnaligned = 0;

template <class... Rest>
using New = void*(size_t, Rest...);
template <class... Rest>
using Delete = void(void*, Rest...);

void* malloc_aligned(size_t bytes, size_t alignment) {
    void* block = nullptr;
    return posix_memalign(&block, alignment, bytes) == 0 ? block : nullptr;
}

void* try_make(size_t bytes, size_t alignment) {
    if (!coco::heap::malloc_family_is_ours()) [[unlikely]]
        return alignment == kUnaligned ? std::malloc(bytes) : malloc_aligned(bytes, alignment);
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

void* make_or_null(size_t bytes, size_t alignment = kUnaligned) noexcept;

void* or_stop(void* block, size_t bytes) {
    if (block == nullptr) coco::heap::stop_undivided(bytes);
    return block;
}

void* make(size_t bytes, size_t alignment = kUnaligned) {
    if (void* block = try_make(bytes, alignment)) [[likely]]
        return block;
    // For a call that no exception may leave. The program's new handler may find memory all the same.
    if (t_undivided != nullptr) return or_stop(make_or_null(bytes, alignment), bytes);
    static auto* plain = reinterpret_cast<New<>*>(library_operator("_Znwm"));
    static auto* aligned = reinterpret_cast<New<align_val_t>*>(library_operator("_ZnwmSt11align_val_t"));
    if (plain == nullptr || aligned == nullptr) throw std::bad_alloc();
    return alignment == kUnaligned ? plain(bytes) : aligned(bytes, align_val_t{alignment});
}

// The library's calls ours again, and catches what its own throws.
void* make_or_null(size_t bytes, size_t alignment) noexcept {
    if (void* block = try_make(bytes, alignment)) [[likely]]
        return block;
    static auto* plain = reinterpret_cast<New<const nothrow_t&>*>(library_operator("_ZnwmRKSt9nothrow_t"));
    static auto* aligned = reinterpret_cast<New<align_val_t, const nothrow_t&>*>(
        library_operator("_ZnwmSt11align_val_tRKSt9nothrow_t"));
    if (plain == nullptr || aligned == nullptr) return nullptr;
    const char* call = std::exchange(t_undivided, nullptr);
    void* block = alignment == kUnaligned ? plain(bytes, std::nothrow)
                                          : aligned(bytes, align_val_t{alignment}, std::nothrow);
    t_undivided = call;
    return block;
}

// Calls the next definition of this operator, else the operator that it is based on.
template <class... Rest, class Base>
void* make_elsewhere(Operator which, Base base, size_t bytes, Rest... rest) {
    if (t_undivided != nullptr) return or_stop(::operator new(bytes, rest..., std::nothrow), bytes);
    auto* next = reinterpret_cast<New<Rest...>*>(next_operator(which));
    return next != nullptr ? next(bytes, rest...) : base();
}

template <class... Rest, class Base>
void* make_elsewhere_or_null(Operator which, Base base, size_t bytes, Rest... rest) noexcept {
    const char* call = std::exchange(t_undivided, nullptr);
    void* block = nullptr;
    try {
        auto* next = reinterpret_cast<New<Rest...>*>(next_operator(which));
        block = next != nullptr ? next(bytes, rest...) : base();
    } catch (const std::bad_alloc&) {
    }
    t_undivided = call;
    return block;
}

template <class... Rest, class Base>
void drop(Operator which, Base base, void* block, Rest... rest) noexcept {
    if (operators_are_ours()) [[likely]]
        return coco::heap::release(block);
    auto* next = reinterpret_cast<Delete<Rest...>*>(next_operator(which));
    next != nullptr ? next(block, rest...) : base();
}

size_t number(align_val_t alignment) { return static_cast<size_t>(alignment); }

}  // namespace

COCO_OPERATOR void* operator new(size_t n) {
    return operators_are_ours() ? make(n)
                                : make_elsewhere(
                                      kNew, [=] { return make(n); }, n);
}
COCO_OPERATOR void* operator new[](size_t n) {
    return operators_are_ours() ? make(n)
                                : make_elsewhere(
                                      kNewArray, [=] { return ::operator new(n); }, n);
}
COCO_OPERATOR void* operator new(size_t n, align_val_t a) {
    return operators_are_ours() ? make(n, number(a))
                                : make_elsewhere(
                                      kNewAligned, [=] { return make(n, number(a)); }, n, a);
}
COCO_OPERATOR void* operator new[](size_t n, align_val_t a) {
    return operators_are_ours() ? make(n, number(a))
                                : make_elsewhere(
                                      kNewArrayAligned, [=] { return ::operator new(n, a); }, n, a);
}
COCO_OPERATOR void* operator new(size_t n, const nothrow_t& t) noexcept {
    if (operators_are_ours()) return make_or_null(n);
    return make_elsewhere_or_null<const nothrow_t&>(
        kNewNothrow, [=] { return ::operator new(n); }, n, t);
}
COCO_OPERATOR void* operator new[](size_t n, const nothrow_t& t) noexcept {
    if (operators_are_ours()) return make_or_null(n);
    return make_elsewhere_or_null<const nothrow_t&>(
        kNewArrayNothrow, [=] { return ::operator new[](n); }, n, t);
}
COCO_OPERATOR void* operator new(size_t n, align_val_t a, const nothrow_t& t) noexcept {
    if (operators_are_ours()) return make_or_null(n, number(a));
    return make_elsewhere_or_null<align_val_t, const nothrow_t&>(
        kNewAlignedNothrow, [=] { return ::operator new(n, a); }, n, a, t);
}
COCO_OPERATOR void* operator new[](size_t n, align_val_t a, const nothrow_t& t) noexcept {
    if (operators_are_ours()) return make_or_null(n, number(a));
    return make_elsewhere_or_null<align_val_t, const nothrow_t&>(
        kNewArrayAlignedNothrow, [=] { return ::operator new[](n, a); }, n, a, t);
}

COCO_OPERATOR void operator delete(void* p) noexcept {
    drop(
        kDelete, [=] { std::free(p); }, p);
}
COCO_OPERATOR void operator delete[](void* p) noexcept {
    drop(
        kDeleteArray, [=] { ::operator delete(p); }, p);
}
COCO_OPERATOR void operator delete(void* p, size_t n) noexcept {
    drop(
        kDeleteSized, [=] { ::operator delete(p); }, p, n);
}
COCO_OPERATOR void operator delete[](void* p, size_t n) noexcept {
    drop(
        kDeleteArraySized, [=] { ::operator delete[](p); }, p, n);
}
COCO_OPERATOR void operator delete(void* p, align_val_t a) noexcept {
    drop(
        kDeleteAligned, [=] { std::free(p); }, p, a);
}
COCO_OPERATOR void operator delete[](void* p, align_val_t a) noexcept {
    drop(
        kDeleteArrayAligned, [=] { ::operator delete(p, a); }, p, a);
}
COCO_OPERATOR void operator delete(void* p, size_t n, align_val_t a) noexcept {
    drop(
        kDeleteSizedAligned, [=] { ::operator delete(p, a); }, p, n, a);
}
COCO_OPERATOR void operator delete[](void* p, size_t n, align_val_t a) noexcept {
    drop(
        kDeleteArraySizedAligned, [=] { ::operator delete[](p, a); }, p, n, a);
}
COCO_OPERATOR void operator delete(void* p, const nothrow_t& t) noexcept {
    drop<const nothrow_t&>(
        kDeleteNothrow, [=] { ::operator delete(p); }, p, t);
}
COCO_OPERATOR void operator delete[](void* p, const nothrow_t& t) noexcept {
    drop<const nothrow_t&>(
        kDeleteArrayNothrow, [=] { ::operator delete[](p); }, p, t);
}
COCO_OPERATOR void operator delete(void* p, align_val_t a, const nothrow_t& t) noexcept {
    drop<align_val_t, const nothrow_t&>(
        kDeleteAlignedNothrow, [=] { ::operator delete(p, a); }, p, a, t);
}
COCO_OPERATOR void operator delete[](void* p, align_val_t a, const nothrow_t& t) noexcept {
    drop<align_val_t, const nothrow_t&>(
        kDeleteArrayAlignedNothrow, [=] { ::operator delete[](p, a); }, p, a, t);
}
