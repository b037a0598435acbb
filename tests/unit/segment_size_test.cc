// SPDX-License-Identifier: BSD-3-Clause
#include "heap/segment_size.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "os/process.h"

using coco::heap::mount_share_bytes;
using coco::heap::segment_bytes;
using coco::os::launched_node_ranks;
using coco::os::tasks_of_node;

namespace {

constexpr std::uint64_t kMiB = 1u << 20, kGiB = 1u << 30, kTiB = std::uint64_t{1} << 40;

constexpr const char* kLaunchers[] = {"MPI_LOCALNRANKS",
                                      "OMPI_COMM_WORLD_LOCAL_SIZE",
                                      "MV2_COMM_WORLD_LOCAL_SIZE",
                                      "PALS_LOCAL_SIZE",
                                      "SLURM_STEP_TASKS_PER_NODE",
                                      "SLURM_TASKS_PER_NODE",
                                      "SLURM_NTASKS_PER_NODE",
                                      "SLURM_NODEID",
                                      "FLUX_JOB_SIZE",
                                      "FLUX_JOB_NNODES"};

}  // namespace

TEST_CASE("a segment has half of the memory", "[heap]") {
    CHECK(segment_bytes({.memory_bytes = 8 * kGiB}) == 4 * kGiB);
    CHECK(segment_bytes({.memory_bytes = 8 * kGiB + 5}) == 4 * kGiB);
    CHECK(segment_bytes({.memory_bytes = 8 * kGiB, .node_ranks = 64}) == 4 * kGiB);
}

TEST_CASE("a segment has what was asked for, and a header", "[heap]") {
    CHECK(segment_bytes({.memory_bytes = 8 * kGiB, .asked_bytes = 64 * kMiB}) == 66 * kMiB);
    CHECK(segment_bytes({.memory_bytes = 8 * kGiB, .asked_bytes = 64 * kMiB + 1}) == 68 * kMiB);
    CHECK(segment_bytes({.memory_bytes = 8 * kGiB, .asked_bytes = UINT64_MAX}) == 32 * kTiB);
}

TEST_CASE("the segments of a node fit the address space of each of its ranks", "[heap]") {
    std::uint64_t bytes = segment_bytes({.memory_bytes = 768 * kGiB, .node_ranks = 384});
    CHECK(bytes <= 32 * kTiB / 384);
    CHECK(bytes > 80 * kGiB);
    CHECK(segment_bytes({.memory_bytes = 768 * kGiB, .asked_bytes = 700 * kGiB, .node_ranks = 384}) == bytes);
}

TEST_CASE("of a bounded address space the program keeps half", "[heap]") {
    CHECK(segment_bytes({.memory_bytes = 64 * kGiB, .node_ranks = 2, .address_space_bytes = 4 * kGiB}) ==
          kGiB);
    CHECK(segment_bytes({.memory_bytes = 64 * kGiB, .node_ranks = 1, .address_space_bytes = 4 * kGiB}) ==
          kGiB);
    CHECK(segment_bytes({.memory_bytes = 64 * kGiB, .node_ranks = 8, .address_space_bytes = 4 * kGiB}) ==
          256 * kMiB);
    CHECK(segment_bytes({.memory_bytes = 64 * kGiB, .file_bytes = 100 * kMiB}) == 100 * kMiB);
}

TEST_CASE("a mount keeps half for the MPI library", "[heap]") {
    CHECK(mount_share_bytes(64 * kMiB, 64 * kMiB, 4) == 8 * kMiB);
    CHECK(mount_share_bytes(64 * kMiB, 10 * kMiB, 4) == 4 * kMiB);
    CHECK(mount_share_bytes(64 * kMiB, 64 * kMiB, 1) == 32 * kMiB);
    CHECK(mount_share_bytes(64 * kMiB, 64 * kMiB, 64) == 0);
}

TEST_CASE("Slurm's tasks of a node", "[os]") {
    CHECK(tasks_of_node("16", 0) == 16);
    CHECK(tasks_of_node("16(x2),3", 0) == 16);
    CHECK(tasks_of_node("16(x2),3", 1) == 16);
    CHECK(tasks_of_node("16(x2),3", 2) == 3);
    CHECK(tasks_of_node("16(x2),3", 3) == 0);
    for (const char* wrong : {"", "x", "16(", "16(x", "16(x2", "(x2)", "16(y2)", ","})
        CHECK(tasks_of_node(wrong, 0) == 0);
}

TEST_CASE("ranks of a node, as launchers say", "[os]") {
    for (const char* name : kLaunchers) unsetenv(name);
    CHECK(launched_node_ranks() == 0);
    CHECK(coco::os::node_ranks() >= 1);
    for (int i : {0, 1, 2, 3, 6}) {
        setenv(kLaunchers[i], "12", 1);
        CHECK(launched_node_ranks() == 12);
        CHECK(coco::os::node_ranks() == 12);
        unsetenv(kLaunchers[i]);
    }
    setenv("SLURM_TASKS_PER_NODE", "7(x2),5", 1);
    CHECK(launched_node_ranks() == 7);
    setenv("SLURM_NODEID", "2", 1);
    CHECK(launched_node_ranks() == 5);
    setenv("SLURM_STEP_TASKS_PER_NODE", "2(x3)", 1);
    CHECK(launched_node_ranks() == 2);
    for (const char* name : kLaunchers) unsetenv(name);
    setenv("FLUX_JOB_SIZE", "9", 1);
    setenv("FLUX_JOB_NNODES", "2", 1);
    CHECK(launched_node_ranks() == 5);
    for (const char* name : kLaunchers) unsetenv(name);
}
