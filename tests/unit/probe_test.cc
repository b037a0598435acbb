// SPDX-License-Identifier: BSD-3-Clause
#include "os/probe.h"

#include <hwloc.h>
#include <sched.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace coco;
using namespace coco::os;
namespace fs = std::filesystem;

namespace {

// A made-up /proc and /sys, gone with the object.
class Root {
  public:
    Root() {
        std::string name = (fs::temp_directory_path() / "coco_probe_XXXXXX").string();
        path_ = mkdtemp(name.data());
    }
    ~Root() { fs::remove_all(path_); }
    Root& with(const std::string& file, const std::string& text) {
        fs::create_directories((path_ / file).parent_path());
        std::ofstream(path_ / file) << text;
        return *this;
    }
    std::int32_t quota() const { return cpu_quota(path_.string()); }
    std::uint64_t granted_memory() const { return granted_memory_bytes(path_.string()); }
    std::string networks() const { return os::networks(path_.string()); }
    Caches caches_of(int cpu) const { return kernel_caches(cpu, path_.string()); }

  private:
    fs::path path_;
};

}  // namespace

TEST_CASE("the seat is a CPU that may be used, in the domain that hwloc says", "[probe]") {
    cpu_set_t before, one;
    REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
    hwloc_topology_t machine;
    hwloc_topology_init(&machine);
    hwloc_topology_load(machine);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &before)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
        os::Seat here = seat();
        CHECK(here.cpu == cpu);
        hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(machine, static_cast<unsigned>(cpu));
        REQUIRE(pu != nullptr);
        CHECK(hwloc_bitmap_isset(pu->nodeset, static_cast<unsigned>(here.domain)));
        CHECK(usable_cpus().count() == 1);
    }
    hwloc_topology_destroy(machine);
    sched_setaffinity(0, sizeof before, &before);
}

TEST_CASE("caches grow with their level and are found once", "[probe]") {
    const Caches& found = caches();
    CHECK(found.l1_bytes >= 4096);
    CHECK(found.l2_bytes >= found.l1_bytes);
    CHECK(found.last_level_bytes >= found.l2_bytes);
    CHECK(&caches() == &found);
}

TEST_CASE("caches are read from the kernel's tables", "[probe]") {
    Root root;
    auto add = [&](int index, const char* level, const char* type, const char* size) {
        std::string folder = "sys/devices/system/cpu/cpu2/cache/index" + std::to_string(index) + "/";
        root.with(folder + "level", level).with(folder + "type", type).with(folder + "size", size);
    };
    add(0, "1\n", "Data\n", "48K\n");
    add(1, "1\n", "Instruction\n", "32K\n");
    add(2, "2\n", "Unified\n", "2048K\n");
    add(3, "3\n", "Unified\n", "107520K\n");
    Caches found = root.caches_of(2);
    CHECK(found.l1_bytes == 48 * 1024);
    CHECK(found.l2_bytes == 2048 * 1024);
    CHECK(found.last_level_bytes == 107520 * 1024);
    CHECK(root.caches_of(0).l1_bytes == 0);
}

TEST_CASE("hwloc finds the same caches here", "[probe]") {
    hwloc_topology_t machine;
    hwloc_topology_init(&machine);
    hwloc_topology_load(machine);
    os::Seat here = seat();
    const Caches& found = caches();
    hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(machine, static_cast<unsigned>(here.cpu));
    REQUIRE(pu != nullptr);
    hwloc_obj_t l1 = hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_L1CACHE, pu);
    hwloc_obj_t l2 = hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_L2CACHE, pu);
    if (l1 != nullptr) CHECK(found.l1_bytes == l1->attr->cache.size);
    if (l2 != nullptr) CHECK(found.l2_bytes == l2->attr->cache.size);
    hwloc_topology_destroy(machine);
}

TEST_CASE("usable CPUs are those of the affinity mask, or fewer by quota", "[probe]") {
    cpu_set_t mask;
    REQUIRE(sched_getaffinity(0, sizeof mask, &mask) == 0);
    Cpus cpus = usable_cpus();
    cpus.quota = 0;
    CHECK(cpus.count() == CPU_COUNT(&mask));
    cpus.quota = 1;
    CHECK(cpus.count() == 1);
}

TEST_CASE("the quota is that of the tightest control group above", "[probe]") {
    CHECK(Root().quota() == 0);
    CHECK(Root().with("proc/self/cgroup", "0::/\n").with("sys/fs/cgroup/cpu.max", "max 100000\n").quota() ==
          0);
    CHECK(
        Root().with("proc/self/cgroup", "0::/\n").with("sys/fs/cgroup/cpu.max", "250000 100000\n").quota() ==
        2);
    CHECK(Root().with("proc/self/cgroup", "0::/\n").with("sys/fs/cgroup/cpu.max", "50000 100000\n").quota() ==
          1);
    CHECK(Root()
              .with("proc/self/cgroup", "0::/job/step\n")
              .with("sys/fs/cgroup/job/cpu.max", "300000 100000\n")
              .with("sys/fs/cgroup/job/step/cpu.max", "800000 100000\n")
              .quota() == 3);
    CHECK(Root()
              .with("proc/self/cgroup", "3:memory:/x\n2:cpu,cpuacct:/job\n")
              .with("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "400000\n")
              .with("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n")
              .with("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
              .with("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
              .quota() == 4);
    CHECK(Root().with("proc/self/cgroup", "garbage\n0::\n").quota() == 0);
}

TEST_CASE("a node's networks are named by their kinds and rates", "[probe]") {
    CHECK(Root().networks().empty());
    CHECK(Root()
              .with("sys/class/infiniband/mlx5_1/ports/1/rate", "200 Gb/sec (4X HDR)\n")
              .with("sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n")
              .with("sys/class/infiniband/mlx5_12/ports/1/rate", "200 Gb/sec (4X HDR)\n")
              .with("sys/class/infiniband/mlx5_12/ports/1/state", "4: ACTIVE\n")
              .with("sys/class/infiniband/mlx5_13/ports/1/rate", "10 Gb/sec (4X)\n")
              .with("sys/class/infiniband/mlx5_13/ports/1/state", "1: DOWN\n")
              .with("sys/class/infiniband/ibp24s0/ports/1/state", "1: DOWN\n")
              .with("sys/class/infiniband/ibp24s0/ports/2/state", "4: ACTIVE\n")
              .with("sys/class/infiniband/ibp24s0/ports/2/rate", "40 Gb/sec (4X QDR)\n")
              .with("sys/class/cxi/cxi0/device/vendor", "0x17db\n")
              .networks() ==
          "cxi, ibp of 40 Gb/sec (4X QDR), mlx of 100 Gb/sec (4X EDR), mlx of 200 Gb/sec (4X HDR)");
}

TEST_CASE("machines are invented in our words or in hwloc's", "[probe]") {
    std::string error;
    auto read = [&](const char* text) {
        auto machine = invented_machine(text, error);
        REQUIRE(machine);
        return std::pair{machine->nodes, machine->domains};
    };
    CHECK(read("nodes=4,domains=2") == std::pair{4, 2});
    CHECK(read("numa:2 core:4 pu:1") == std::pair{1, 2});
    CHECK(read("pack:3 numa:2 core:4 pu:2") == std::pair{1, 6});
    CHECK(read("core:4 pu:1") == std::pair{1, 1});
    CHECK(read("2 4 1").first == 1);  // hwloc guesses which level has the memory
    CHECK(read("pack:2 [numa(memory=1GB)] [numa] core:2 pu:2(indexes=0,4,1,5,2,6,3,7)") == std::pair{1, 4});
    CHECK(read("numa:2 core:2 pu:2(indexes=4*2:2*2:1*2)") == std::pair{1, 2});
    CHECK(read("numa:2 core:2 pu:2(indexes=numa:core)") == std::pair{1, 2});
    // Of some hwloc's own checks end the process, and some would take it for ever, or gigabytes.
    for (auto wrong : {"numa:",
                       "numa:0",
                       "domino:2 pu:1",
                       "nodes:4,domains:2",
                       "MemCache:1 numa:2 core:4 pu:1",
                       "[MemCache] pu:4",
                       "pu:100000",
                       "pack:64 core:64 pu:2",
                       "numa:0x1001",
                       "pu:-1",
                       "pu:99999999999999999999",
                       "pu:2(indexes=0,1",
                       "numa:2 pu:1(indexes=0,5555555555)",
                       "[numa(memory=1GB indexes=0xffffff)] pu:2",
                       "numa:2 pu:1(indexes=0,010000999)",
                       "pu:2(indexes=1*4096:1*4096:1*4096:1*4096:1*4096:1*16)",
                       "pu:2(indexes=0x1,0)",
                       "pu:2(indexes=1*+4096:1*+4096:1*+4096:1*+4096:1*+4096:1*+4096)",
                       "pu:2(indexes=0,\t1)",
                       "pu:2(indexes=0,-1)",
                       "1(indexes=5555555555555555555)1()"}) {
        INFO(wrong);
        CHECK_FALSE(invented_machine(wrong, error));
        CHECK_THAT(error, Catch::Contains("hwloc"));
    }
    CHECK_FALSE(invented_machine("sockets=2", error));
    CHECK_THAT(error, Catch::Contains("neither nodes=N"));
    CHECK_FALSE(invented_machine("nodes\n=2", error));
    CHECK(error == "\"nodes\\x0a=2\" is neither nodes=N nor domains=M");
}

TEST_CASE("the control groups' memory is that of the tightest one", "[probe]") {
    CHECK(Root().granted_memory() == UINT64_MAX);
    CHECK(Root()
              .with("proc/self/cgroup", "0::/job/step\n")
              .with("sys/fs/cgroup/memory.max", "max\n")
              .with("sys/fs/cgroup/job/memory.max", "2147483648\n")
              .with("sys/fs/cgroup/job/step/memory.max", "max\n")
              .granted_memory() == 2147483648);
    CHECK(Root()
              .with("proc/self/cgroup", "5:cpu,cpuacct:/\n7:memory:/job\n")
              .with("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
              .with("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1048576\n")
              .granted_memory() == 1048576);
}
