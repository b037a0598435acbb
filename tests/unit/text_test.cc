// SPDX-License-Identifier: BSD-3-Clause
#include "base/text.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "base/one_line.h"

using coco::base::Text;

TEST_CASE("text joins words, characters and whole numbers", "[text]") {
    Text text("limit");
    text << ' ' << 42 << std::string_view(" of ") << std::uint64_t{7} << "!";
    CHECK(text.view() == "limit 42 of 7!");
    CHECK(Text().view().empty());
}

TEST_CASE("numbers of every sign and width are written in full", "[text]") {
    Text text;
    text << INT64_MIN << ' ' << INT64_MAX << ' ' << UINT64_MAX << ' ' << 0 << ' ' << -1;
    CHECK(text.view() == "-9223372036854775808 9223372036854775807 18446744073709551615 0 -1");
}

TEST_CASE("text from outside shows as one line", "[text]") {
    using coco::base::Letters;
    using coco::base::one_line;
    CHECK(one_line("") == "");
    CHECK(one_line("a b\\c~") == "a b\\c~");
    CHECK(one_line(std::string_view("\0\t\n\x1b\x7f", 5)) == "\\x00\\x09\\x0a\\x1b\\x7f");
    CHECK(one_line("caf\xc3\xa9") == "caf\xc3\xa9");
    CHECK(one_line("caf\xc3\xa9", Letters::ascii) == "caf\\xc3\\xa9");
}

TEST_CASE("a missing string shows as such", "[text]") {
    const char* none = nullptr;
    CHECK((Text() << none).view() == "(null)");
}

TEST_CASE("text that is full is cut off", "[text]") {
    Text text;
    const std::string word(Text::kCapacity - 2, 'x');
    text << word << 12345;
    CHECK(text.view() == word + "12");
    text << "more" << 'y' << -6;
    CHECK(text.view().size() == Text::kCapacity);
    CHECK(text.view() == word + "12");
}
