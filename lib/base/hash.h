// SPDX-License-Identifier: BSD-3-Clause
//
// FNV-1a over whole numbers, or over the bytes of texts: the same on all machines. Works below malloc. Thread
// safety: that of its owner. Never fails.
#pragma once
#include <cstdint>
#include <string_view>

namespace coco::base {

class Hash {
  public:
    void add(std::uint64_t number) { value_ = (value_ ^ number) * 0x100000001B3u; }
    // With an end, so that "a", "bc" and "ab", "c" differ.
    void add(std::string_view text) {
        for (char c : text) add(std::uint64_t{static_cast<unsigned char>(c)});
        add(std::uint64_t{0});
    }
    std::uint64_t value() const { return value_; }

  private:
    std::uint64_t value_ = 0xCBF29CE484222325u;
};

}  // namespace coco::base
