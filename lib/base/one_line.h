// SPDX-License-Identifier: BSD-3-Clause
//
// Text from outside as part of a line: values of variables, words of files, names of libraries. Called where
// such text is put into a line for the user, or into a file. Thread safety: pure functions. The template
// allocates nothing and is usable below malloc.
#pragma once
#include <string>
#include <string_view>

namespace coco::base {

enum class Letters : unsigned char { all, ascii };

// Calls `add` with the parts of the text in turn. Control characters, and bytes that are not ASCII if only
// that is wanted, come as \x0a.
template <class Add>
void show_on_one_line(std::string_view text, Letters letters, Add add) {
    constexpr char kDigits[] = "0123456789abcdef";
    for (const char& c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= ' ' && byte != 0x7f && (byte < 0x80 || letters == Letters::all)) {
            add(std::string_view(&c, 1));
        } else {
            const char shown[] = {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
            add(std::string_view(shown, sizeof shown));
        }
    }
}

inline std::string one_line(std::string_view text, Letters letters = Letters::all) {
    std::string line;
    show_on_one_line(text, letters, [&](std::string_view part) { line += part; });
    return line;
}

}  // namespace coco::base
