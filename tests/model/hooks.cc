// SPDX-License-Identifier: BSD-3-Clause
//
// The functions that the code under test calls. This code is compiled for the thread sanitizer, and so calls
// a function for each access to memory and each atomic operation; these functions are not the sanitizer's
// here, but hand all of that to the explorer. The code itself is the library's, as it is. Waiting (pause,
// sched_yield, futex) is the explorer's, too.
#include <cstring>

#include "explorer.h"
#include "os/cpu.h"
#include "os/futex.h"

using namespace coco;
using model::Order;
using model::Value;

namespace {

// As the sanitizer's interface has them.
Order order_of(int order) {
    constexpr Order kOrders[] = {Order::relaxed, Order::acquire, Order::acquire,
                                 Order::release, Order::acq_rel, Order::seq_cst};
    return kOrders[order];
}

[[noreturn]] void stop(const char* what) {
    model::expect(false, what);
    __builtin_trap();
}

}  // namespace

namespace coco::os {

void pause() { model::look_again(); }
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t) {
    model::sleep_while(&word, expected);
}
void futex_wake_all(const std::atomic<std::uint32_t>&) {}

}  // namespace coco::os

extern "C" {

int sched_yield() noexcept {
    model::look_again();
    return 0;
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_atomic_thread_fence(int) { stop("a fence: the model has none"); }
void __tsan_atomic_signal_fence(int) {}

void __tsan_read_range(void* at, std::size_t bytes) { model::plain_access(at, bytes, false); }
void __tsan_write_range(void* at, std::size_t bytes) { model::plain_access(at, bytes, true); }

void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
    model::plain_access(from, bytes, false);
    model::plain_access(to, bytes, true);
    return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
    model::plain_access(from, bytes, false);
    model::plain_access(to, bytes, true);
    return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, std::size_t bytes) {
    model::plain_access(to, bytes, true);
    return std::memset(to, value, bytes);
}

#define COCO_PLAIN(bytes)                                                                  \
    void __tsan_read##bytes(void* at) { model::plain_access(at, bytes, false); }           \
    void __tsan_write##bytes(void* at) { model::plain_access(at, bytes, true); }           \
    void __tsan_unaligned_read##bytes(void* at) { model::plain_access(at, bytes, false); } \
    void __tsan_unaligned_write##bytes(void* at) { model::plain_access(at, bytes, true); } \
    void __tsan_read_write##bytes(void* at) { model::plain_access(at, bytes, true); }
COCO_PLAIN(1)
COCO_PLAIN(2)
COCO_PLAIN(4)
COCO_PLAIN(8)
COCO_PLAIN(16)
#undef COCO_PLAIN

#define COCO_PLACE __builtin_return_address(0)
#define COCO_MODIFY(bits, name, change)                                                                 \
    std::uint##bits##_t __tsan_atomic##bits##_##name(volatile std::uint##bits##_t* at,                  \
                                                     std::uint##bits##_t by, int order) {               \
        return static_cast<std::uint##bits##_t>(model::modify(                                          \
            at, bits / 8, [by](Value value) -> Value { return change; }, order_of(order), COCO_PLACE)); \
    }
#define COCO_ATOMIC(bits)                                                                                  \
    std::uint##bits##_t __tsan_atomic##bits##_load(const volatile std::uint##bits##_t* at, int order) {    \
        return static_cast<std::uint##bits##_t>(model::load(at, bits / 8, order_of(order), COCO_PLACE));   \
    }                                                                                                      \
    void __tsan_atomic##bits##_store(volatile std::uint##bits##_t* at, std::uint##bits##_t value,          \
                                     int order) {                                                          \
        model::store(at, bits / 8, value, order_of(order), COCO_PLACE);                                    \
    }                                                                                                      \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile std::uint##bits##_t*, std::uint##bits##_t*, \
                                                      std::uint##bits##_t, int, int) {                     \
        stop("a compare-and-exchange: the model has none");                                                \
    }                                                                                                      \
    COCO_MODIFY(bits, fetch_add, value + by)                                                               \
    COCO_MODIFY(bits, fetch_sub, value - by)                                                               \
    COCO_MODIFY(bits, exchange, (static_cast<void>(value), by))
COCO_ATOMIC(8)
COCO_ATOMIC(32)
COCO_ATOMIC(64)
#undef COCO_ATOMIC
#undef COCO_MODIFY

}  // extern "C"
