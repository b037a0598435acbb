// SPDX-License-Identifier: BSD-3-Clause
#include "os/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/bits.h"
#include "base/index.h"
#include "base/kept_errno.h"
#include "base/kernel.h"
#include "base/text.h"
#include "base/write_signals.h"
#include "os/cpu.h"
#include "os/process.h"

namespace coco::os {
namespace {

constexpr int kLeastDescriptor = 500;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, which older headers lack

int open_unlinked() {
    base::Text name;
    name << "/coco-" << kernel::getpid() << '-' << random_cookie() << '\0';
    int fd = shm_open(name.view().data(), O_RDWR | O_CREAT | O_EXCL, 0600);  // sets O_CLOEXEC
    if (fd >= 0) shm_unlink(name.view().data());
    return fd;
}

// A page of shared memory that is given back must have lost its byte.
bool try_advice() {
    const base::HeldWriteSignals held;
    int fd = kernel::memfd_create("coco-advice", MFD_CLOEXEC);
    const std::uint64_t bytes = page_bytes();
    void* page = fd >= 0 && kernel::ftruncate(fd, bytes) == 0
                     ? kernel::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                     : MAP_FAILED;
    bool heeded = true;  // what cannot be tried is believed
    if (page != MAP_FAILED) {
        auto* byte = static_cast<volatile unsigned char*>(page);
        *byte = 1;
        heeded = kernel::madvise(page, bytes, MADV_REMOVE) != 0 || *byte == 0;
        kernel::munmap(page, bytes);
    }
    if (fd >= 0) kernel::close(fd);
    return heeded;
}

}  // namespace

bool advice_is_heeded() {
    enum { kUnasked, kHeeded, kIgnored };
    static constinit std::atomic<int> answer{kUnasked};        // relaxed: nothing else goes with it
    if (answer.load(std::memory_order_relaxed) == kUnasked) {  // two threads find out the same
        const base::KeptErrno kept;
        answer.store(try_advice() ? kHeeded : kIgnored, std::memory_order_relaxed);
    }
    return answer.load(std::memory_order_relaxed) == kHeeded;
}

// Low numbers are those of shells, those that close 0 to 2 and those that are
// started without them, whose next output would land in the object. As it is where there are few numbers.
int move_up(int fd) {
    if (fd < 0) return fd;
    for (int least : {kLeastDescriptor, 3}) {
        int moved = kernel::fcntl(fd, F_DUPFD_CLOEXEC, least);
        if (moved < 0) continue;
        kernel::close(fd);
        return moved;
    }
    return fd;
}

MemoryObject make_memory_object(std::uint64_t bytes, Via via) {
    const base::HeldWriteSignals held;
    MemoryObject object;
    if (via == Via::memfd) object.fd = kernel::memfd_create("coco-heap", MFD_CLOEXEC);
    if (object.fd >= 0)
        kernel::fchmod(object.fd, S_IRUSR | S_IWUSR);  // it is for all otherwise, if only they could open it
    if (object.fd < 0) {
        object.fd = open_unlinked();
        object.on_mount = true;
    }
    object.fd = move_up(object.fd);
    if (object.fd >= 0 && kernel::ftruncate(object.fd, bytes) != 0) {
        const base::KeptErrno kept;
        kernel::close(object.fd);
        object.fd = -1;
    }
    return object;
}

// Punched by address, not by descriptor: the program may have closed the descriptor (daemons close all).
bool punch_hole(void* address, std::uint64_t bytes) {
    return advice_is_heeded() && kernel::madvise(address, bytes, MADV_REMOVE) == 0;
}

bool punch_hole(int fd, std::uint64_t offset, std::uint64_t bytes) {
    return kernel::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes) == 0;
}

bool reserve_pages(int fd, std::uint64_t offset, std::uint64_t bytes) {
    return kernel::fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, bytes) == 0;
}

void populate(void* address, std::uint64_t bytes) {
    constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack
    const base::KeptErrno kept;
    kernel::madvise(address, bytes, kPopulateWrite);
}

void Written::look_up(std::uint64_t from) {
    asked_ = from;
    const off_t data = kernel::seek(fd_, from, SEEK_DATA);
    if (data < 0) {  // nothing behind `from`, or the system cannot tell
        found_ = {errno == ENXIO ? UINT64_MAX : from, UINT64_MAX};
        return;
    }
    const off_t hole = kernel::seek(fd_, static_cast<std::uint64_t>(data), SEEK_HOLE);
    found_ = {static_cast<std::uint64_t>(data), hole < 0 ? UINT64_MAX : static_cast<std::uint64_t>(hole)};
}

Written::Range Written::next(std::uint64_t from, std::uint64_t limit) {
    if (from >= limit) return {limit, limit};
    if (from < asked_ || from >= found_.end) look_up(from);
    return {std::min(std::max(from, found_.begin), limit), std::min(found_.end, limit)};
}

namespace {

// Whether a file with choices has the one in brackets that is in force.
bool is_in_force(const char* path, std::string_view wanted) {
    char text[128] = {};
    int fd = kernel::open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? kernel::read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0) kernel::close(fd);
    return n > 0 && std::string_view(text, base::index(n)).find(wanted) != std::string_view::npos;
}

}  // namespace

bool can_collapse(void* address) {
    const base::KeptErrno kept;
    if (page_bytes() != 4096 || kernel::call(SYS_prctl, PR_GET_THP_DISABLE) > 0 ||
        is_in_force("/sys/kernel/mm/transparent_hugepage/enabled", "[never]"))
        return false;
    // A page alone is no huge page to make, but the kernel looks at the mapping.
    return kernel::madvise(address, page_bytes(), kCollapse) == 0;
}

void make_huge(void* begin, std::uint64_t bytes) {
    const base::KeptErrno kept;
    auto* first = static_cast<std::byte*>(begin);
    // One page of each has to be there.
    for (std::byte* at = first; at < first + bytes; at += kHugePageBytes)
        reinterpret_cast<std::atomic<std::uint8_t>*>(at)->fetch_or(0, std::memory_order_relaxed);
    kernel::madvise(begin, bytes, kCollapse);
}

void ask_for_huge_pages(void* begin, std::uint64_t bytes) {
    constexpr std::uint64_t kWorthIt = 4 * kHugePageBytes;
    const auto first = reinterpret_cast<std::uint64_t>(begin);
    const std::uint64_t from = base::round_up(first, kHugePageBytes),
                        end = (first + bytes) / kHugePageBytes * kHugePageBytes;
    if (from + kWorthIt > end) return;
    const base::KeptErrno kept;
    kernel::madvise(reinterpret_cast<void*>(from), end - from, MADV_HUGEPAGE);
}

}  // namespace coco::os
