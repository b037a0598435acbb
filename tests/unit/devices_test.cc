// SPDX-License-Identifier: BSD-3-Clause
#include "os/devices.h"

#include <sys/mman.h>

#include <catch2/catch.hpp>

namespace coco::os {

TEST_CASE("runtimes of devices are known by their libraries' names", "[devices]") {
    CHECK(runtime_of("libcuda.so.1") == Runtime::cuda);
    CHECK(runtime_of("libamdhip64.so.6") == Runtime::other);
    CHECK(runtime_of("libhsa-runtime64.so.1") == Runtime::other);
    CHECK(runtime_of("libze_loader.so.1") == Runtime::other);
    CHECK(runtime_of("libcudart.so.12") == Runtime::none);  // it loads the driver
    CHECK(runtime_of("libOpenCL.so.1") == Runtime::none);   // hwloc loads it
    CHECK(runtime_of("") == Runtime::none);
}

TEST_CASE("a device that is in use is known by its file", "[devices]") {
    CHECK(is_device_file("/dev/kfd"));
    CHECK(is_device_file("/dev/dri/renderD128"));
    CHECK_FALSE(is_device_file("/dev/driver"));
    CHECK_FALSE(is_device_file("/dev/null"));
}

TEST_CASE("the kernel says what memory no processor can read", "[devices]") {
    constexpr std::size_t kBytes = 4096;
    void* memory = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    CHECK(is_out_of_reach(memory));
    REQUIRE(mprotect(memory, kBytes, PROT_READ) == 0);
    CHECK_FALSE(is_out_of_reach(memory));
    munmap(memory, kBytes);
}

TEST_CASE("where no runtime is loaded there is no memory of devices", "[devices]") {
    CHECK_FALSE(may_have_devices());
    CHECK(g_devices.load() == Devices::none);
    expect_devices();
    CHECK(g_devices.load() == Devices::expected);
    CHECK_FALSE(may_have_devices());
    CHECK_FALSE(uses_device());
}

}  // namespace coco::os
