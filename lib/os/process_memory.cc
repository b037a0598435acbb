// SPDX-License-Identifier: BSD-3-Clause
#include "os/process_memory.h"

#include <sys/uio.h>

#include <cerrno>

namespace coco::os {

bool read_process(pid_t pid, const void* from, void* to, std::size_t bytes) {
    const int saved = errno;
    auto* source = static_cast<const std::byte*>(from);
    auto* target = static_cast<std::byte*>(to);
    while (bytes != 0) {
        const iovec local{target, bytes};
        const iovec remote{const_cast<std::byte*>(source), bytes};
        const ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
        if (n <= 0) return false;
        source += n;
        target += n;
        bytes -= static_cast<std::size_t>(n);
    }
    errno = saved;
    return true;
}

}  // namespace coco::os
