// SPDX-License-Identifier: BSD-3-Clause
#include "os/own_mappings.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/kernel.h"
#include "os/shared_memory.h"

namespace coco::os {
namespace {

// PROCMAP_QUERY, as linux/fs.h describes it; headers older than the kernel lack it.
struct Query {
    std::uint64_t size, flags, address;
    std::uint64_t begin, end, protection, page_bytes, offset, inode;
    std::uint32_t device_major, device_minor, name_bytes, build_id_bytes;
    std::uint64_t name, build_id;
};
constexpr unsigned long kQuery = _IOWR('f', 17, Query);
constexpr std::uint64_t kReadable = 1, kWritable = 2, kExecutable = 4, kShared = 8, kCoveringOrNext = 16;

constexpr int kUnopened = -1, kUnknown = -2;
constinit std::atomic<int> g_maps{kUnopened};  // relaxed: a number, whose file is the kernel's to order

int open_maps() { return kernel::open("/proc/self/maps", O_RDONLY | O_CLOEXEC); }

// The descriptor stays open. A program may close it, and have another file by its number: then a new one is
// opened, and that number is left alone.
int opened_maps(int stale) {
    int fd = move_up(open_maps());
    if (fd < 0) fd = kUnknown;
    if (g_maps.compare_exchange_strong(stale, fd, std::memory_order_relaxed)) return fd;
    if (fd >= 0) kernel::close(fd);
    return stale;
}

int ask(int fd, std::uint64_t address, std::uint64_t flags, Query& query) {
    query = {};
    query.size = sizeof query;
    query.flags = flags;
    query.address = address;
    return kernel::ioctl(fd, kQuery, &query) == 0 ? 0 : errno;
}

int protection_of(const Query& query) {
    return ((query.protection & kReadable) != 0 ? PROT_READ : 0) |
           ((query.protection & kWritable) != 0 ? PROT_WRITE : 0) |
           ((query.protection & kExecutable) != 0 ? PROT_EXEC : 0);
}

// A number and the character behind it.
bool take_number(std::string_view& text, std::uint64_t& number, int base = 16) {
    auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error != std::errc() || stop == text.data() + text.size()) return false;
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()) + 1);
    return true;
}

// "7f00-7f10 rw-s 00001000 00:01 1234 /memfd:name": the last number ends with a blank or the line.
bool parse(std::string_view line, Mapping& mapping) {
    std::uint64_t device_major = 0, device_minor = 0;
    if (!take_number(line, mapping.begin) || !take_number(line, mapping.end) || line.size() < 5) return false;
    mapping.protection = (line[0] == 'r' ? PROT_READ : 0) | (line[1] == 'w' ? PROT_WRITE : 0) |
                         (line[2] == 'x' ? PROT_EXEC : 0);
    mapping.shared = line[3] == 's';
    line.remove_prefix(5);
    if (!take_number(line, mapping.offset) || !take_number(line, device_major) ||
        !take_number(line, device_minor) || !take_number(line, mapping.inode, 10))
        return false;
    mapping.device = makedev(device_major, device_minor);
    return true;
}

Told tell(std::uint64_t address, std::uint64_t flags, Mapping& mapping) {
    int saved = errno;
    int fd = g_maps.load(std::memory_order_relaxed);
    Query query;
    int why = fd >= 0 ? ask(fd, address, flags, query) : EBADF;
    if (fd != kUnknown && (why == EBADF || why == ENOTTY)) {
        fd = opened_maps(fd);
        why = fd >= 0 ? ask(fd, address, flags, query) : EBADF;
        if (why == ENOTTY) g_maps.store(kUnknown, std::memory_order_relaxed);
    }
    errno = saved;
    if (why == ENOENT) return Told::none;
    if (why != 0) return Told::unknown;
    mapping = {.begin = query.begin,
               .end = query.end,
               .offset = query.offset,
               .inode = query.inode,
               .device = makedev(query.device_major, query.device_minor),
               .protection = protection_of(query),
               .shared = (query.protection & kShared) != 0};
    return Told::mapping;
}

}  // namespace

Told mapping_at(std::uint64_t address, Mapping& mapping) { return tell(address, 0, mapping); }
bool can_ask_for_mappings() {
    Mapping any;
    if (g_maps.load(std::memory_order_relaxed) == kUnopened) static_cast<void>(mapping_at(0, any));
    return g_maps.load(std::memory_order_relaxed) != kUnknown;
}

MappingList::MappingList() : fd_(open_maps()), has_failed_(fd_ < 0) {}
MappingList::~MappingList() {
    if (fd_ >= 0) kernel::close(fd_);
}

// Returns: false at the end and after a failure.
bool MappingList::fill() {
    std::memmove(text_, text_ + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (has_failed_) return false;
    ssize_t n = kernel::read(fd_, text_ + end_, sizeof text_ - end_);
    has_failed_ = n < 0;
    if (n <= 0) return false;
    end_ += static_cast<std::size_t>(n);
    return true;
}

// A file's name at the line's end may be longer than the buffer.
bool MappingList::skip_rest_of_line() {
    while (is_within_line_) {
        std::string_view rest(text_ + begin_, end_ - begin_);
        const auto stop = rest.find('\n');
        is_within_line_ = stop == rest.npos;
        begin_ = is_within_line_ ? end_ : begin_ + stop + 1;
        if (is_within_line_ && !fill()) return false;
    }
    return true;
}

Told MappingList::next(Mapping& mapping) {
    constexpr std::size_t kFieldsMostBytes = 128;  // before the file's name
    if (!skip_rest_of_line()) return has_failed_ ? Told::unknown : Told::none;
    while (end_ - begin_ < kFieldsMostBytes && fill()) {
    }
    if (has_failed_) return Told::unknown;
    if (begin_ == end_) return Told::none;
    is_within_line_ = true;
    return parse({text_ + begin_, end_ - begin_}, mapping) ? Told::mapping : Told::unknown;
}

Told MappingsFrom::next(Mapping& mapping) {
    Told told = list_ ? Told::unknown : tell(address_, kCoveringOrNext, mapping);
    if (told == Told::unknown) {
        if (!list_) list_.emplace();
        do told = list_->next(mapping);
        while (told == Told::mapping && mapping.end <= address_);
    }
    address_ = mapping.end;
    return told;
}

}  // namespace coco::os
