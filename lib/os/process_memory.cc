// SPDX-License-Identifier: BSD-3-Clause
#include "os/process_memory.h"

#include <sys/prctl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "base/index.h"
#include "base/kept_errno.h"

namespace coco::os {

void let_others_read() {
    const base::KeptErrno kept;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // refused where there is no Yama
}

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
        bytes -= base::index(n);
    }
    errno = saved;
    return true;
}

bool read_process(pid_t pid, const void* from, std::span<const iovec> to) {
    const int saved = errno;
    auto* source = static_cast<const std::byte*>(from);
    while (!to.empty()) {
        constexpr std::size_t kMost = 256;  // below the kernel's IOV_MAX
        const auto some = to.first(std::min(to.size(), kMost));
        std::size_t bytes = 0;
        for (const iovec& part : some) bytes += part.iov_len;
        const iovec remote{const_cast<std::byte*>(source), bytes};
        const ssize_t n = process_vm_readv(pid, some.data(), some.size(), &remote, 1, 0);
        // What is read in part is read once more, each place by itself.
        if (n != static_cast<ssize_t>(bytes)) {
            const std::byte* at = source;
            for (const iovec& part : some) {
                if (!read_process(pid, at, part.iov_base, part.iov_len)) return false;
                at += part.iov_len;
            }
        }
        source += bytes;
        to = to.subspan(some.size());
    }
    errno = saved;
    return true;
}

}  // namespace coco::os
