// SPDX-License-Identifier: BSD-3-Clause
//
// A line of text in a fixed buffer: what we may build messages with below malloc and before main.
// Cut off, never overflowed, when it is full. No allocation, no stdio, no locale.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coco::base {

class Text {
  public:
    static constexpr std::size_t kCapacity = 1000;

    Text() = default;
    explicit Text(std::string_view s) { *this << s; }

    Text& operator<<(std::string_view s) {
        for (char c : s)
            if (size_ < kCapacity) data_[size_++] = c;
        return *this;
    }
    Text& operator<<(const char* s) { return *this << std::string_view(s ? s : "(null)"); }
    Text& operator<<(char c) { return *this << std::string_view(&c, 1); }
    template <std::integral T>
    Text& operator<<(T value) {
        if constexpr (std::is_signed_v<T>) {
            if (value < 0) return (*this << '-').digits(0 - static_cast<std::uint64_t>(value));
        }
        return digits(static_cast<std::uint64_t>(value));
    }

    std::string_view view() const { return {data_, size_}; }

  private:
    Text& digits(std::uint64_t value) {
        char reversed[20];
        int n = 0;
        do {
            reversed[n++] = static_cast<char>('0' + value % 10);
        } while (value /= 10);
        while (n > 0) *this << reversed[--n];
        return *this;
    }

    std::size_t size_ = 0;
    char data_[kCapacity];
};

}  // namespace coco::base
