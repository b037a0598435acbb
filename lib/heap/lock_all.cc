// SPDX-License-Identifier: BSD-3-Clause
#include "heap/lock_all.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/index.h"
#include "base/kept_errno.h"
#include "base/kernel.h"
#include "heap/overlays.h"
#include "heap/segment.h"

namespace coco::heap {
namespace {

// Locks, and thereby fills, the mapping on a line of /proc/self/maps if it is no segment, nor the program's
// own within one. A mapping that cannot be locked (device memory, no access) is left, as mlockall leaves it.
void lock_line(std::string_view line) {
    if (line.find("coco-") != line.npos) return;
    std::uint64_t begin = 0, end = 0;
    const char* stop = line.data() + line.size();
    auto first = std::from_chars(line.data(), stop, begin, 16);
    if (first.ec != std::errc() || first.ptr == stop) return;
    if (std::from_chars(first.ptr + 1, stop, end, 16).ec != std::errc()) return;
    if (touches_segment(reinterpret_cast<void*>(begin), end - begin)) return;
    mlock(reinterpret_cast<void*>(begin), end - begin);
}

void lock_others() {
    int fd = kernel::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    char text[8192];
    std::size_t have = 0;
    for (ssize_t n = 0; fd >= 0 && (n = kernel::read(fd, text + have, sizeof text - have)) > 0;) {
        have += base::index(n);
        std::string_view rest(text, have);
        for (auto end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
            lock_line(rest.substr(0, end));
            rest.remove_prefix(end + 1);
        }
        have = rest.size();
        std::memmove(text, rest.data(), have);
    }
    if (fd >= 0) kernel::close(fd);
}

// Relaxed: whoever maps memory while another thread asks for this may come before or after it.
constinit std::atomic<bool> g_locks_later{false};

}  // namespace

bool locks_later_pages() { return g_locks_later.load(std::memory_order_relaxed); }

int lock_all(int flags) {
    if ((flags & MCL_FUTURE) != 0) g_locks_later.store(true, std::memory_order_relaxed);
    bool fills = (flags & MCL_CURRENT) != 0 && (flags & MCL_ONFAULT) == 0;
    if (own().bytes == 0 || !fills) return static_cast<int>(syscall(SYS_mlockall, flags));
    if (syscall(SYS_mlockall, flags | MCL_ONFAULT) != 0) return -1;
    const base::KeptErrno kept;
    // Later mappings are filled as the program wants it; the segments are there already, or are peers'
    // (View::map()).
    if ((flags & MCL_FUTURE) != 0) syscall(SYS_mlockall, flags & ~MCL_CURRENT);
    lock_others();
    return 0;
}

}  // namespace coco::heap
