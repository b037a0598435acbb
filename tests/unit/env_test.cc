// SPDX-License-Identifier: BSD-3-Clause
#include "base/env.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

using namespace coco::base;

namespace {

constexpr std::uint64_t kUntouched = 12345;

std::uint64_t bytes_of(std::string_view text) {
    std::uint64_t bytes = kUntouched;
    REQUIRE(parse_bytes(text, bytes));
    return bytes;
}

}  // namespace

TEST_CASE("bytes are decimal numbers with a unit", "[env]") {
    CHECK(bytes_of("0") == 0);
    CHECK(bytes_of("4096") == 4096);
    CHECK(bytes_of("64K") == 65536);
    CHECK(bytes_of("64k") == 65536);
    CHECK(bytes_of("3M") == std::uint64_t{3} << 20);
    CHECK(bytes_of("2G") == std::uint64_t{2} << 30);
    CHECK(bytes_of("1T") == std::uint64_t{1} << 40);
    CHECK(bytes_of("18446744073709551615") == UINT64_MAX);
    CHECK(bytes_of("16777215T") == std::uint64_t{16777215} << 40);
}

TEST_CASE("what is no such number is refused and leaves the result alone", "[env]") {
    for (const char* text : {"", "K", "-1", "+1", " 1", "1 ", "1.5G", "0x10", "12Q", "1KK", "1KB", "ten",
                             "18446744073709551616", "16777216T", "17179869184G"}) {
        CAPTURE(text);
        std::uint64_t bytes = kUntouched;
        CHECK_FALSE(parse_bytes(text, bytes));
        CHECK(bytes == kUntouched);
    }
    std::uint64_t number = kUntouched;
    CHECK_FALSE(parse_number("1K", number));
    CHECK(number == kUntouched);
}

TEST_CASE("a variable is read as it is now; unset and empty are alike", "[env]") {
    setenv("COCO_UNIT_TEST", "one", 1);
    CHECK(env("COCO_UNIT_TEST") == "one");
    setenv("COCO_UNIT_TEST", "", 1);
    CHECK(env("COCO_UNIT_TEST").empty());
    unsetenv("COCO_UNIT_TEST");
    CHECK(env("COCO_UNIT_TEST").empty());
}

TEST_CASE("before libc has an environ, the kernel's copy is read", "[env]") {
    std::ifstream in("/proc/self/environ", std::ios::binary);
    std::string all{std::istreambuf_iterator<char>(in), {}};
    std::string first = all.c_str();
    std::size_t equals = first.find('=');
    REQUIRE(equals != std::string::npos);
    std::string name = first.substr(0, equals);
    char** saved = environ;
    environ = nullptr;
    std::string_view found = env(name.c_str()), missing = env("COCO_NO_SUCH_NAME");
    environ = saved;
    CHECK(found == first.substr(equals + 1));
    CHECK(missing.empty());
}

TEST_CASE("the table of settings names each variable once and says what is allowed", "[env]") {
    std::set<std::string> names;
    for (const Setting& s : settings()) {
        CAPTURE(s.name);
        CHECK(names.insert(s.name).second);
        CHECK(std::string(s.name).starts_with("COCO_"));
        CHECK(std::string(s.choices) != "");
        CHECK(std::string(s.preset) != "");
        CHECK(std::string(s.summary) != "");
        CHECK(&setting(s.name) == &s);
    }
    CHECK(names.count("COCO_STATS") == 1);
}
