// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include "base/env.h"
#include "base/kept_errno.h"
#include "base/kernel.h"
#include "base/one_line.h"
#include "base/write_signals.h"

namespace coco::base {
namespace {

std::atomic<int> g_rank{-1};
std::atomic<int> g_level{-1};

int level_from_environment() {
    constexpr std::string_view kNames[] = {"error", "warn", "info", "debug"};
    std::string_view value = env("COCO_LOG");
    for (int i = 0; i < 4; ++i)
        if (value == kNames[i]) return i;
    return static_cast<int>(LogLevel::warn);
}

}  // namespace

void set_log_rank(int rank) { g_rank.store(rank, std::memory_order_relaxed); }

LogLevel log_level() {
    int level = g_level.load(std::memory_order_relaxed);
    if (level < 0) g_level.store(level = level_from_environment(), std::memory_order_relaxed);
    return static_cast<LogLevel>(level);
}

void write_line(const Text& line) {
    const KeptErrno kept;
    Text shown, out;
    show_on_one_line(line.view(), Letters::all, [&](std::string_view part) { shown << part; });
    out << shown.view().substr(0, Text::kCapacity - 1) << '\n';
    std::string_view rest = out.view();
    const HeldWriteSignals held;
    while (!rest.empty()) {
        ssize_t n = kernel::write(STDERR_FILENO, rest.data(), rest.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        rest.remove_prefix(static_cast<std::size_t>(n));
    }
}

void log(LogLevel level, const Text& line) {
    if (level > log_level()) return;
    constexpr const char* kNames[] = {"error", "warn", "info", "debug"};
    int rank = g_rank.load(std::memory_order_relaxed);
    Text out;
    out << "coco[";
    if (rank >= 0)
        out << rank;
    else
        out << "pid " << kernel::getpid();
    out << "]: " << kNames[static_cast<int>(level)] << ": " << line.view();
    write_line(out);
}

void log_last(const Text& line) {
    log(LogLevel::error, line);
    timespec wait{.tv_sec = 0, .tv_nsec = 100'000'000};
    kernel::call(SYS_nanosleep, static_cast<long>(reinterpret_cast<std::uintptr_t>(&wait)));
}

}  // namespace coco::base
