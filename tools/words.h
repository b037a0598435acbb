// SPDX-License-Identifier: BSD-3-Clause
//
// Facts of this machine, and texts for people: for the subcommands of `coco`. Called by the command
// only. Thread safety: any thread. Fails: an empty text, or none.
#pragma once
#include <concepts>
#include <cstdint>
#include <map>
#include <span>
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
// The CPUs that this process may use.
std::vector<std::int64_t> own_cpus();
// This process's namespace of a kind, as "pid:[4026531836]"; empty: the kernel does not tell.
std::string own_namespace(const std::string& kind);
// Whether seccomp filters the system calls of this process.
bool has_call_filter();
// "COCO_STATS=1": the settings that are set.
std::vector<std::string> settings_in_force();

std::string counted(std::size_t number, const std::string& what);  // "1 file", "2 files"
std::string in_words(std::uint64_t bytes);                         // "64 MiB"
std::string joined(const std::vector<std::string>& words, std::string_view between = ", ");
std::string numbers(std::vector<std::int64_t> values);                                   // "0-3,7"
std::string numbered(const std::string& what, const std::vector<std::int64_t>& values);  // "ranks 0-3,7"
std::vector<std::int64_t> listed_numbers(std::string_view list);  // the reverse; up to the first that is none

// A text or a number, as a part of a text.
struct Part : std::string {
    template <std::convertible_to<std::string_view> Text>
    Part(const Text& text) : std::string(std::string_view(text)) {}
    Part(std::integral auto number) : std::string(std::to_string(number)) {}
};
// The text with its holes {} filled by parts. Requires: as many parts as holes.
std::string filled(std::span<const Part> parts, std::string_view text);
inline std::string filled(std::initializer_list<Part> parts, std::string_view text) {
    return filled(std::span(parts), text);
}

// A table whose columns are as wide as their longest word; the last column is ragged.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

// Prints "coco: error: " and the line. Returns: the exit status, which is 2.
int tell_error(const std::string& line);

}  // namespace coco::tools
