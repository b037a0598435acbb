// SPDX-License-Identifier: BSD-3-Clause
#include "os/descriptors.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/index.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/shared_memory.h"

namespace coco::os {
namespace {

constexpr std::uint64_t kMark = 0x646f6f72636f636fu;

// The letter that is sent along with a descriptor.
struct Letter {
    std::uint64_t mark;
    std::uint64_t from;
};

struct Address {
    explicit Address(std::uint64_t cookie) {
        base::Text name;
        name << '\0' << "coco-" << cookie;  // a name that starts with a zero is no file
        name_.sun_family = AF_UNIX;
        std::memcpy(name_.sun_path, name.view().data(), name.view().size());
        bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.view().size());
    }
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name_); }
    sockaddr_un name_{};
    socklen_t bytes_;
};

enum class Sent { yes, later, never };

Sent send_descriptor(int socket, std::uint64_t own, std::uint64_t to, int fd) {
    Address address(to);
    Letter letter{kMark, own};
    iovec text{&letter, sizeof letter};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
    msghdr message{};
    message.msg_name = &address.name_;
    message.msg_namelen = address.bytes_;
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
    if (sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return Sent::yes;
    // A full queue, or too many descriptors on their way.
    bool later = errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS || errno == EINTR;
    return later ? Sent::later : Sent::never;
}

// A message that has come: its sender and its descriptor, -1 where it is not to be believed.
struct Received {
    std::uint64_t from = 0;
    int fd = -1;
    bool any = false;
};

// Every descriptor that was passed is here now: all but one are closed again.
void read_control(msghdr& message, Received& received, bool& is_mine) {
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET) continue;
        if (head->cmsg_type == SCM_CREDENTIALS) {
            ucred sender{};
            std::memcpy(&sender, CMSG_DATA(head), sizeof sender);
            is_mine = sender.uid == getuid();
        } else if (head->cmsg_type == SCM_RIGHTS) {
            std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (std::size_t i = 0; i < count; ++i) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
                if (received.fd >= 0) close(received.fd);
                received.fd = fd;
            }
        }
    }
}

Received receive_descriptor(int socket) {
    Received received;
    Letter letter{};
    iovec text{&letter, sizeof letter};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(4 * sizeof(int))];
    msghdr message{};
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t bytes = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (bytes < 0) return received;
    received.any = true;
    received.from = letter.from;
    bool is_mine = false;
    read_control(message, received, is_mine);
    bool good = is_mine && bytes == sizeof letter && letter.mark == kMark &&
                (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
    if (!good && received.fd >= 0) {
        close(received.fd);
        received.fd = -1;
    }
    return received;
}

// Until nothing more has come. Strangers may send faster than is read, so this ends behind a number of
// messages, too.
void receive_all(int socket, std::span<const std::uint64_t> mates, std::span<int> fds) {
    constexpr std::size_t kBesides = 1000;
    for (std::size_t left = mates.size() + kBesides; left != 0; --left) {
        const Received received = receive_descriptor(socket);
        if (!received.any) return;
        if (received.fd < 0) continue;
        auto at = base::index(std::ranges::find(mates, received.from) - mates.begin());
        if (at == mates.size() || fds[at] >= 0)
            close(received.fd);
        else
            fds[at] = received.fd;
    }
}

}  // namespace

DescriptorDoor::DescriptorDoor(std::uint64_t cookie)
    : fd_(move_up(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))), cookie_(cookie) {
    if (fd_ < 0) return;
    Address address(cookie);
    int on = 1;
    if (setsockopt(fd_, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 &&
        bind(fd_, address.get(), address.bytes_) == 0)
        return;
    close(fd_);
    fd_ = -1;
}

DescriptorDoor::~DescriptorDoor() {
    if (fd_ >= 0) close(fd_);
}

void exchange_descriptors(DescriptorDoor& door, int fd, std::span<const std::uint64_t> mates,
                          std::span<int> received, std::uint64_t timeout_ns) {
    std::ranges::fill(received, -1);
    if (!door.is_open()) return;
    constexpr int kTurn_ms = 1;  // after which a mate whose queue was full is tried again
    std::uint64_t end_ns = now_ns() + timeout_ns;
    std::vector<bool> out_of_reach(mates.size());  // a mate that cannot be told is not waited for
    std::size_t next = 0;
    auto is_missing = [&](std::size_t i) { return received[i] < 0 && !out_of_reach[i]; };
    for (;;) {
        for (Sent sent = Sent::yes; next < mates.size(); ++next) {
            sent = send_descriptor(door.fd_, door.cookie_, mates[next], fd);
            if (sent == Sent::later) break;
            out_of_reach[next] = sent == Sent::never;
        }
        receive_all(door.fd_, mates, received);
        bool done = next == mates.size();
        for (std::size_t i = 0; i < mates.size() && done; ++i) done = !is_missing(i);
        if (done || now_ns() >= end_ns) return;
        pollfd readable{door.fd_, POLLIN, 0};
        poll(&readable, 1, kTurn_ms);
    }
}

}  // namespace coco::os
