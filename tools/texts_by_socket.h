// SPDX-License-Identifier: BSD-3-Clause
//
// Whole texts over a stream socket. Called by the command only. Thread safety: one thread an object. Fails:
// by return value; the other side may be lost or silent, and no text is waited for longer than the caller
// says.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace coco::tools {

constexpr std::uint64_t kSecond_ns = 1'000'000'000u;
// How long one text may take: the checks before it start programs, of which the slowest has 20 s.
constexpr std::uint64_t kText_ns = 60 * kSecond_ns;

class TextSocket {
  public:
    explicit TextSocket(int fd = -1) : fd_(fd) {}
    ~TextSocket();
    TextSocket(TextSocket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
    TextSocket& operator=(TextSocket&& other) noexcept;
    bool is_open() const { return fd_ >= 0; }
    int fd() const { return fd_; }
    bool send(const std::string& text);
    std::optional<std::string> receive(std::uint64_t timeout_ns);

  private:
    bool read_all(char* to, std::size_t bytes, std::uint64_t end_ns);
    int fd_;
};

}  // namespace coco::tools
