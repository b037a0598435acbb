// SPDX-License-Identifier: BSD-3-Clause
//
// The COCO_ environment: one table of every variable (docs/environment.md is made from it), and reading that
// works before libc has set up `environ` and below malloc.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace coco::base {

struct Setting {
    const char* name;
    const char* choices;  // what a valid value looks like, as error messages say it
    const char* preset;   // the value that holds when it is unset
    const char* summary;
};

// Every variable that libcoco reads.
std::span<const Setting> settings();
// The row of `name`. Requires: it is in the table.
const Setting& setting(std::string_view name);
// The value of an environment variable; empty when unset, and in programs that run with more rights than
// their user's. Lives as long as the process.
std::string_view env(const char* name);
// Reads "4096", "64K", "1.5G" is refused; K, M, G, T are powers of 1024. Returns: false if it is not such a
// number.
bool parse_bytes(std::string_view text, std::uint64_t& bytes);
// Bytes as parse_bytes() reads them, with K, M, G or T where that is exact.
std::string bytes_text(std::uint64_t bytes);
// Reads a plain decimal number. Returns: false if it is none or does not fit.
bool parse_number(std::string_view text, std::uint64_t& number);

}  // namespace coco::base
