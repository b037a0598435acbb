// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "os/pinned.h"

using namespace coco::os;

TEST_CASE("the number of pinned pages is read from the process's status", "[pinned]") {
    CHECK(pinned_kib("Name:\tx\nVmLck:\t      12 kB\nVmPin:\t       0 kB\nVmHWM:\t 1 kB\n") == 0);
    CHECK(pinned_kib("Name:\tx\nVmPin:\t    4096 kB\n") == 4096);
    // What cannot be read counts as pinned.
    CHECK(pinned_kib("") != 0);
    CHECK(pinned_kib("Name:\tVmPin:\n") != 0);
    CHECK(pinned_kib("Name:\tx\nVmPin:") != 0);
    CHECK(pinned_kib("Name:\tx\nVmPin:\tmany\n") != 0);
}

TEST_CASE("libraries that pin memory are known by name, and those that do it for MPI", "[pinned]") {
    CHECK(is_of_device("libcuda.so.1"));
    CHECK(is_of_device("libamdhip64.so.5"));
    CHECK_FALSE(is_of_device("libc.so.6"));
    CHECK_FALSE(is_of_device("libOpenCL.so.1"));  // hwloc loads it
    CHECK_FALSE(is_of_device(""));
    CHECK(registers_memory("libibverbs.so.1"));
    CHECK_FALSE(registers_memory("libmpi.so.40"));
    for (const char* name :
         {"libmpich.so.12", "libmpi.so.40", "mca_btl_openib.so", "libuct_ib.so.0", "libmlx5-rdmav34.so"})
        CHECK(is_of_transport(name));
    CHECK_FALSE(is_of_transport("libgasnet-ibv-par.so"));
}

TEST_CASE("this process has pinned nothing", "[pinned]") { CHECK_FALSE(may_have_pinned_memory()); }
