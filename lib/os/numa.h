// SPDX-License-Identifier: BSD-3-Clause
//
// Which NUMA domain memory comes from. The kernel takes a page from the domain of whoever touches it first,
// which for shared memory may be a mate in another domain. By the bare system call: libnuma's constructor
// reads files and allocates in every process that loads it.
// Called for memory that one rank fills and its mates read. No malloc. Thread safety: any thread. Fails: by
// return value, quietly.
#pragma once
#include <cstdint>

namespace coco::os {

// Has the pages within [address, address + bytes) come from the domain where this thread runs now, as long as
// that has free ones, whoever touches them first and in whichever process. Pages that have been touched stay
// where they are; pages that reach out of the range stay as they were. On a border of the range the kernel
// divides its mapping, so a few large ranges are better than many small ones. Returns: false if the kernel
// refuses, as some containers have it do, or knows no domains. A system call.
bool prefer_here(void* address, std::uint64_t bytes);

}  // namespace coco::os
