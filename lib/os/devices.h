// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of devices: whether an address of the program's may be a GPU's, which only the device's runtime may
// touch, and an MPI library that asks it. A runtime is a library that the program, or the MPI library, has
// loaded: CUDA's is asked by its own functions, looked up at run time; of memory of others (ROCm, Level Zero)
// the kernel says that it cannot read it.
//
// Called by dispatch before each call, by comm as communicators are set up, and by the doors of mmap. Thread
// safety: any thread; expect_devices() in signal handlers too. Fails: what cannot be asked counts as plain
// memory.
#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>

namespace coco::os {

enum class Devices : std::uint8_t {
    none,      // no runtime was loaded when it was last looked for, and no memory was mapped since
    expected,  // it has to be looked for
    looking,   // so it has, and somebody does
    present,   // for good
};
inline constinit std::atomic<Devices> g_devices{Devices::expected};
// Looks which runtimes are loaded. Returns: whether there is one.
bool find_devices();

// Whether buffers of this process may be in memory of devices. A load where nothing was mapped since it was
// asked last.
inline bool may_have_devices() {
    // Acquire: pairs with find_devices(), for what is_on_device() reads. Whoever names memory of a device has
    // it from the thread that mapped it.
    const Devices devices = g_devices.load(std::memory_order_acquire);
    return devices != Devices::none && (devices == Devices::present || find_devices());
}
// Says that the program, or a runtime, has mapped memory: a device's may be among it.
inline void expect_devices() {
    Devices seen = g_devices.load(std::memory_order_relaxed);
    while ((seen == Devices::none || seen == Devices::looking) &&
           !g_devices.compare_exchange_weak(seen, Devices::expected, std::memory_order_relaxed)) {
    }
}

// Whether an address is in memory of a device. Requires: may_have_devices().
bool is_on_device(const void* address);
// Whether the process uses a device by now. Some 10 us.
bool uses_device();

// The parts of these questions, for tests.
enum class Runtime : std::uint8_t { none, cuda, other };
// Which runtime a library of this name belongs to.
Runtime runtime_of(std::string_view library);
// Whether the file of a descriptor of this name is a device of a runtime other than CUDA.
bool is_device_file(std::string_view file);
// Whether the kernel cannot read the byte there for another process.
bool is_out_of_reach(const void* address);

}  // namespace coco::os
