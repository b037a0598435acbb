// SPDX-License-Identifier: BSD-3-Clause
//
// Facts of this machine as texts, and texts for people: for the subcommands of `coco`. Called by the command
// only. Thread safety: any thread. Fails: an empty text.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace coco::tools {

std::string first_line(const std::string& path);
// The choice in brackets: "madvise" of "always [madvise] never".
std::string choice_in_force(const std::string& path);
// "Linux 6.1.0"
std::string kernel_name();
// The CPUs of each NUMA domain that has some.
std::map<std::int64_t, std::vector<std::int64_t>> cpus_of_domains();
// "COCO_STATS=1": the settings that are set.
std::vector<std::string> settings_in_force();

std::string counted(std::size_t number, const std::string& what);  // "1 file", "2 files"
std::string in_words(std::uint64_t bytes);                         // "64 MiB"
std::string joined(const std::vector<std::string>& words, std::string_view between = ", ");
std::string numbers(std::vector<std::int64_t> values);            // "0-3,7"
std::vector<std::int64_t> listed_numbers(std::string_view list);  // the reverse; up to the first that is none

// A table whose columns are as wide as their longest word; the last column is ragged.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

// Prints "coco: error: " and the line. Returns: the exit status, which is 2.
int tell_error(const std::string& line);

}  // namespace coco::tools
