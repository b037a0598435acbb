// SPDX-License-Identifier: BSD-3-Clause
//
// What the fuzz targets of this folder share. A target defines LLVMFuzzerTestOneInput(), gets any bytes as an
// outsider might give them to libcoco, and requires of the code what its header promises: REQUIRE_TRUE ends
// the process, which the fuzzer, and the replay of the corpus, take for a finding. Thread safety: none; a
// process fuzzes in one thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace fuzz {

[[noreturn]] inline void fail(const char* what, std::string_view about, const char* file, int line) {
    std::fprintf(stderr, "%s:%d: not true: %s\nabout: %.*s\n", file, line, what,
                 static_cast<int>(about.size()), about.data());
    std::abort();
}

// Splits an input: numbers come from its end and text from its front, so that a file of text is an input,
// too, and what is inserted there does not change the numbers. When nothing is left, numbers are 0.
class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

    template <class Number>
    Number number() {
        static_assert(std::is_integral_v<Number>);
        Number value = 0;
        if (rest_.size() < sizeof value) return value;
        std::memcpy(&value, rest_.data() + rest_.size() - sizeof value, sizeof value);
        rest_.remove_suffix(sizeof value);
        return value;
    }
    // From 0 to `most`.
    std::uint32_t number_up_to(std::uint32_t most) { return number<std::uint32_t>() % (most + 1); }
    bool flag() { return (number<std::uint8_t>() & 1) != 0; }
    // What stands before the next `end`, which is passed over; all that is left if there is none.
    std::string_view text_before(char end) {
        const std::size_t at = rest_.find(end);
        const std::string_view text = rest_.substr(0, at);
        rest_.remove_prefix(at == rest_.npos ? rest_.size() : at + 1);
        return text;
    }
    std::string_view rest() const { return rest_; }
    bool is_empty() const { return rest_.empty(); }

  private:
    std::string_view rest_;
};

// Whether a terminal would show it as one line: no control characters, but something to see.
inline bool is_one_line(std::string_view text) {
    if (text.empty()) return false;
    for (char c : text)
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') return false;
    return true;
}

// A file of this process, for code that reads files. All inputs use the same one, so that they leave nothing.
class File {
  public:
    explicit File(const char* name) : path_(folder() + "/" + name) {}
    const std::string& path() const { return path_; }
    void write(std::string_view text) const {
        std::ofstream out(path_, std::ios::binary | std::ios::trunc);
        out << text << std::flush;
        if (!out) fail("the file can be written", path_, __FILE__, __LINE__);
    }

  private:
    // Goes away with the process, unless that is killed.
    static const std::string& folder() {
        static const std::string& path = *[] {
            std::string name = std::filesystem::temp_directory_path() / "coco_fuzz_XXXXXX";
            if (mkdtemp(name.data()) == nullptr) fail("there is a folder", name, __FILE__, __LINE__);
            std::atexit([] { std::filesystem::remove_all(folder()); });
            return new std::string(name);  // never destroyed, as it is used at the very end
        }();
        return path;
    }
    const std::string path_;
};

}  // namespace fuzz

#define REQUIRE_TRUE(condition, about)                                         \
    do {                                                                       \
        if (!(condition)) ::fuzz::fail(#condition, about, __FILE__, __LINE__); \
    } while (false)
