// SPDX-License-Identifier: BSD-3-Clause
//
// Passing a descriptor to other processes of the node over sockets, for processes whose /proc/PID/fd is
// closed to each other. Each process first opens a door of its own, named after a random number that the
// others are told; then all exchange. Knows no MPI. Called when communicators are set up. Thread safety: one
// exchange per door at a time. Process safety: strangers may send what they like; it is dropped. Fails: by
// return value.
#pragma once
#include <cstdint>
#include <span>

namespace coco::os {

// A datagram socket with a name in the kernel's abstract space, bound as long as this lives.
class DescriptorDoor {
  public:
    explicit DescriptorDoor(std::uint64_t cookie);
    ~DescriptorDoor();
    DescriptorDoor(const DescriptorDoor&) = delete;
    DescriptorDoor& operator=(const DescriptorDoor&) = delete;
    bool is_open() const { return fd_ >= 0; }

  private:
    friend void exchange_descriptors(DescriptorDoor&, int, std::span<const std::uint64_t>, std::span<int>,
                                     std::uint64_t);
    int fd_;
    std::uint64_t cookie_;
};

// Sends `fd` to each mate and receives one from each. Requires: all mates' doors are open, all exchange.
// received: as many as mates, in their order; close-on-exec; -1 where none has come in timeout_ns, or the
// mate has no door. Only processes of this user are believed.
void exchange_descriptors(DescriptorDoor& door, int fd, std::span<const std::uint64_t> mates,
                          std::span<int> received, std::uint64_t timeout_ns);

}  // namespace coco::os
