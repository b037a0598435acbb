// SPDX-License-Identifier: BSD-3-Clause
#include "tools/texts_by_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "os/clock.h"

namespace coco::tools {
namespace {

constexpr std::uint64_t kMostBytes = 64u << 20;  // a longer text is no text of ours

bool send_all(int fd, const char* from, std::size_t bytes) {
    while (bytes != 0) {
        const ssize_t n = ::send(fd, from, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        from += n;
        bytes -= static_cast<std::size_t>(n);
    }
    return true;
}

}  // namespace

TextSocket::~TextSocket() {
    if (fd_ >= 0) close(fd_);
}

TextSocket& TextSocket::operator=(TextSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

bool TextSocket::send(const std::string& text) {
    const std::uint64_t bytes = text.size();
    return send_all(fd_, reinterpret_cast<const char*>(&bytes), sizeof bytes) &&
           send_all(fd_, text.data(), text.size());
}

bool TextSocket::read_all(char* to, std::size_t bytes, std::uint64_t end_ns) {
    while (bytes != 0) {
        const ssize_t n = recv(fd_, to, bytes, MSG_DONTWAIT);  // also where the time is over: it may be there
        if (n > 0) {
            to += n;
            bytes -= static_cast<std::size_t>(n);
            continue;
        }
        if (n == 0 || (errno != EINTR && errno != EAGAIN)) return false;
        const std::uint64_t now_ns = os::now_ns();
        if (now_ns >= end_ns) return false;
        pollfd wait{fd_, POLLIN, 0};
        if (poll(&wait, 1, static_cast<int>((end_ns - now_ns) / 1'000'000 + 1)) < 0 && errno != EINTR)
            return false;
    }
    return true;
}

std::optional<std::string> TextSocket::receive(std::uint64_t timeout_ns) {
    const std::uint64_t end_ns = os::now_ns() + timeout_ns;
    std::uint64_t bytes = 0;
    if (!read_all(reinterpret_cast<char*>(&bytes), sizeof bytes, end_ns) || bytes > kMostBytes)
        return std::nullopt;
    std::string text(bytes, '\0');
    if (!read_all(text.data(), text.size(), end_ns)) return std::nullopt;
    return text;
}

}  // namespace coco::tools
