// SPDX-License-Identifier: BSD-3-Clause
#include "tools/words.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/env.h"
#include "os/probe.h"

namespace coco::tools {

std::string first_line(const std::string& path) {
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    return line;
}

std::string choice_in_force(const std::string& path) {
    const std::string line = first_line(path);
    const std::size_t begin = line.find('['), end = line.find(']');
    if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
    return line.substr(begin + 1, end - begin - 1);
}

std::string kernel_name() {
    utsname system{};
    return uname(&system) == 0 ? std::string(system.sysname) + " " + system.release : std::string();
}

std::map<std::int64_t, std::vector<std::int64_t>> cpus_of_domains() {
    std::map<std::int64_t, std::vector<std::int64_t>> found;
    std::error_code error;
    std::filesystem::directory_iterator at("/sys/devices/system/node", error);
    for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
        const std::string name = at->path().filename();
        std::uint64_t domain = 0;
        if (!name.starts_with("node") || !base::parse_number(std::string_view(name).substr(4), domain))
            continue;
        std::vector<std::int64_t> cpus = listed_numbers(first_line(at->path() / "cpulist"));
        if (!cpus.empty()) found[static_cast<std::int64_t>(domain)] = std::move(cpus);
    }
    return found;
}

std::vector<std::int64_t> own_cpus() {
    const os::Cpus cpus = os::usable_cpus();
    std::vector<std::int64_t> found;
    for (std::int64_t cpu = 0; cpu < os::Cpus::kMost; ++cpu)
        if ((cpus.mask[cpu / 64] >> (cpu % 64) & 1) != 0) found.push_back(cpu);
    return found;
}

std::string own_namespace(const std::string& kind) {
    std::error_code error;
    const std::filesystem::path link = std::filesystem::read_symlink("/proc/self/ns/" + kind, error);
    return error ? "" : link.string();
}

bool has_call_filter() {
    std::ifstream in("/proc/self/status");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("Seccomp:")) return line.find_first_of("12") != std::string::npos;
    return false;
}

std::vector<std::string> settings_in_force() {
    constexpr std::string_view kNotTheUsers = "COCO_RANK_PROCESS";
    std::vector<std::string> words;
    for (const base::Setting& setting : base::settings())
        if (const std::string value(base::env(setting.name)); !value.empty() && setting.name != kNotTheUsers)
            words.push_back(setting.name + ("=" + value));
    return words;
}

std::string counted(std::size_t number, const std::string& what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

std::string in_words(std::uint64_t bytes) {
    constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    std::uint64_t tenths = 0;  // of the unit
    for (; bytes >= 1024 && unit < 4; ++unit) {
        tenths = bytes % 1024 * 10 / 1024;
        bytes /= 1024;
    }
    const std::string fraction = tenths != 0 && bytes < 100 ? "." + std::to_string(tenths) : std::string();
    return std::to_string(bytes) + fraction + " " + kUnits[unit];
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
    std::string text;
    for (const std::string& word : words) text.append(text.empty() ? "" : between).append(word);
    return text;
}

std::string numbers(std::vector<std::int64_t> values) {
    std::ranges::sort(values);
    std::string text;
    for (std::size_t i = 0; i < values.size();) {
        std::size_t end = i + 1;
        auto is_next = [&](std::size_t at) {  // without overflow, whatever they are
            return static_cast<std::uint64_t>(values[at]) - static_cast<std::uint64_t>(values[at - 1]) <= 1;
        };
        while (end < values.size() && is_next(end)) ++end;
        text.append(text.empty() ? "" : ",").append(std::to_string(values[i]));
        if (values[end - 1] != values[i]) text.append("-").append(std::to_string(values[end - 1]));
        i = end;
    }
    return text;
}

std::string numbered(const std::string& what, const std::vector<std::int64_t>& values) {
    return what + (values.size() == 1 ? " " : "s ") + numbers(values);
}

std::string filled(std::span<const Part> parts, std::string_view text) {
    std::string all;
    for (const Part& part : parts) {
        const std::size_t hole = std::min(text.find("{}"), text.size());
        all.append(text.substr(0, hole)).append(part);
        text.remove_prefix(std::min(hole + 2, text.size()));
    }
    return all.append(text);
}

std::vector<std::int64_t> listed_numbers(std::string_view list) {
    std::vector<std::int64_t> values;
    while (!list.empty()) {
        const std::string_view range = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), range.size() + 1));
        const std::size_t dash = std::min(range.find('-'), range.size());
        std::uint64_t first = 0, last = 0;
        if (!base::parse_number(range.substr(0, dash), first)) break;
        if (dash == range.size())
            last = first;
        else if (!base::parse_number(range.substr(dash + 1), last))
            break;
        for (; first <= last; ++first) values.push_back(static_cast<std::int64_t>(first));
    }
    return values;
}

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
    constexpr std::size_t kBetween = 2;
    std::vector<std::size_t> widths;
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths.resize(std::max(widths.size(), i + 1));
            widths[i] = std::max(widths[i], row[i].size());
        }
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += row[i];
            if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + kBetween, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

int tell_error(const std::string& line) {
    std::fprintf(stderr, "coco: error: %s\n", line.c_str());
    return 2;
}

}  // namespace coco::tools
