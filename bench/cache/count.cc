// SPDX-License-Identifier: BSD-3-Clause
#include "bench/cache/count.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/index.h"
#include "blocks/copy_block.h"
#include "exec/walk.h"
#include "sync/flag.h"

namespace coco::cache {
namespace {

using base::index;
constexpr std::uint64_t kCalls = 32;

// Raw events: what a core's loads and stores miss in its L1 and in its L2 (from perf's lists).
struct Events {
    const char* vendor;
    std::uint64_t missed[2];
};
constexpr Events kEvents[] = {
    {"GenuineIntel", {0x0151, 0x2724}},   // l1d.replacement, l2_rqsts.all_demand_miss
    {"AuthenticAMD", {0xe860, 0x0864}}};  // l2_request_g1, l2_cache_req_stat: of data

const Events* events_here() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        for (const Events& one : kEvents)
            if (line.find(one.vendor) != std::string::npos) return &one;
    return nullptr;
}

int open_counter(std::uint64_t event) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_RAW;
    attr.config = event;
    attr.disabled = attr.exclude_kernel = attr.exclude_hv = 1;
    return static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

// What the threads share. A flag has 2^21 for each call that is begun, and the milestones since, plus 1.
struct World {
    std::uint64_t block_bytes;
    std::vector<std::vector<std::byte>> areas;  // by area and rank
    std::vector<blocks::Row> rows;
    std::vector<sync::Flag> flags;
    std::vector<std::array<double, 2>> missed;  // by rank
};

struct View {
    World& world;
    std::int32_t rank;
    std::uint64_t begun;

    static constexpr bool kRows = true;
    const blocks::Row& row(schedule::Area area, std::int32_t owner) {
        return world.rows[static_cast<std::size_t>(area) * world.flags.size() + index(owner)];
    }
    void copy(std::byte* target, const std::byte* source) {
        blocks::copy_block(target, source, world.block_bytes);
    }
    void wait(std::int32_t peer, std::int64_t milestone) {
        sync::Flag& flag = world.flags[index(peer)];
        sync::wait(flag.value, flag.doorbell, (begun << 21) + index(milestone + 1), {});
    }
    void raise(std::int64_t milestone) {
        sync::Flag& flag = world.flags[index(rank)];
        sync::raise(flag.value, flag.doorbell, (begun << 21) + index(milestone + 1));
    }
};

void run_rank(World& world, std::int32_t rank, const schedule::Schedule& steps,
              std::uint64_t evicting_bytes) {
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(index(rank), &cpu);
    if (sched_setaffinity(0, sizeof cpu, &cpu) != 0) return;
    const Events* events = events_here();
    const int counters[] = {open_counter(events->missed[0]), open_counter(events->missed[1])};
    std::vector<char> others(evicting_bytes);
    for (std::uint64_t call = 0; call <= kCalls; ++call) {  // the first is not counted
        std::fill(others.begin(), others.end(), static_cast<char>(call));
        for (const std::size_t area : {0, 1})
            std::ranges::fill(world.areas[area * world.flags.size() + index(rank)], std::byte{1});
        View view{world, rank, 2 * call + 1};
        view.raise(0);
        for (std::size_t r = 0; r < world.flags.size(); ++r) view.wait(base::number(r), 0);
        ++view.begun;
        for (const int counter : counters)
            if (call > 0) ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
        exec::walk(steps, view);
        for (const int counter : counters) ioctl(counter, PERF_EVENT_IOC_DISABLE, 0);
    }
    for (int i = 0; i < 2; ++i) {
        std::uint64_t missed = 0;
        const bool good = read(counters[i], &missed, sizeof missed) == sizeof missed;
        world.missed[index(rank)][index(i)] = good ? static_cast<double>(missed) / kCalls : -1e300;
        close(counters[i]);
    }
}

}  // namespace

std::string no_counters(std::int32_t ranks) {
    cpu_set_t usable;
    CPU_ZERO(&usable);
    sched_getaffinity(0, sizeof usable, &usable);
    for (std::int32_t rank = 0; rank < ranks; ++rank)
        if (!CPU_ISSET(index(rank), &usable)) return "CPU " + std::to_string(rank) + " is not to be had";
    const Events* events = events_here();
    if (events == nullptr) return "the events of this processor are not known";
    const int counter = open_counter(events->missed[1]);
    if (counter < 0) return std::string("this machine has no counters (") + std::strerror(errno) + ")";
    close(counter);
    return "";
}

std::array<double, 2> counted(const Call& call, std::span<const schedule::Schedule> schedules,
                              std::uint64_t evicting_bytes) {
    const std::size_t ranks = schedules.size();
    World world{call.block_bytes, {}, {}, std::vector<sync::Flag>(ranks), {}};
    world.missed.resize(ranks, {-1e300, -1e300});
    for (std::size_t i = 0; i < schedule::kAreas * ranks; ++i) {
        world.areas.emplace_back(std::max(ranks, index(schedules[i % ranks].scratch_blocks)) *
                                 call.block_bytes);
        world.rows.push_back({world.areas[i].data(), static_cast<std::int64_t>(call.block_bytes)});
    }
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < ranks; ++r)
        threads.emplace_back([&, r] { run_rank(world, base::number(r), schedules[r], evicting_bytes); });
    for (std::thread& one : threads) one.join();
    std::array<double, 2> mean{};
    for (const auto& one : world.missed)
        for (std::size_t i : {0, 1}) mean[i] += one[i] / static_cast<double>(ranks);
    return mean;
}

}  // namespace coco::cache
