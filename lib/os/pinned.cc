// SPDX-License-Identifier: BSD-3-Clause
#include "os/pinned.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace coco::os {
namespace {

template <std::size_t n>
bool begins_with_one(std::string_view name, const std::string_view (&beginnings)[n]) {
    return std::ranges::any_of(beginnings, [&](std::string_view begin) { return name.starts_with(begin); });
}

std::string_view file_name(const char* path) {
    std::string_view name = path != nullptr ? path : "";
    const auto slash = name.rfind('/');
    return slash == name.npos ? name : name.substr(slash + 1);
}

// Calls act with the name of each library that a loaded object needs, until it returns true.
template <class Act>
bool for_each_needed(const dl_phdr_info& object, Act act) {
    const ElfW(Dyn)* dynamic = nullptr;
    for (int i = 0; i < object.dlpi_phnum; ++i)
        if (object.dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    if (dynamic == nullptr) return false;
    ElfW(Addr) texts = 0;
    for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry)
        if (entry->d_tag == DT_STRTAB) texts = entry->d_un.d_ptr;
    if (texts == 0) return false;
    if (texts < object.dlpi_addr)
        texts += object.dlpi_addr;  // where the loader leaves the table as it is in the file
    for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry)
        if (entry->d_tag == DT_NEEDED &&
            act(file_name(reinterpret_cast<const char*>(texts + entry->d_un.d_val))))
            return true;
    return false;
}

struct Loaded {
    bool device = false;       // a device's library
    bool registering = false;  // a library or program that may register memory itself
};

Loaded look_at_libraries() {
    Loaded found;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* to) {
            auto& loaded = *static_cast<Loaded*>(to);
            const std::string_view name = file_name(object->dlpi_name);
            loaded.device |= is_of_device(name);
            loaded.registering |= !is_of_transport(name) && !registers_memory(name) &&
                                  for_each_needed(*object, registers_memory);
            return 0;
        },
        &found);
    return found;
}

bool has_entries(const char* folder) {
    DIR* open = opendir(folder);
    if (open == nullptr) return false;
    bool found = false;
    while (const dirent* entry = readdir(open)) found |= entry->d_name[0] != '.';
    closedir(open);
    return found;
}

// InfiniBand, RoCE, iWARP, EFA and Omni-Path are of the first class, Slingshot of the second.
bool has_pinning_network() { return has_entries("/sys/class/infiniband") || has_entries("/sys/class/cxi"); }

// What `of` finds in the kernel's account of this process.
std::uint64_t own_kib(std::uint64_t (*of)(std::string_view)) {
    char text[2048];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, text, sizeof text) : -1;
    if (fd >= 0) close(fd);
    return of({text, bytes > 0 ? static_cast<std::size_t>(bytes) : 0});
}

// The number behind a name at the begin of a line; the largest one if it cannot be read.
std::uint64_t kib_behind(std::string_view name, std::string_view status) {
    constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
    const auto at = status.find(name);
    if (at == status.npos) return kUnknown;
    std::string_view rest = status.substr(at + name.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    std::uint64_t kib = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), kib);
    return read.ec == std::errc() ? kib : kUnknown;
}

// Whether a descriptor is open whose name begins so. Yes, too, where they cannot be listed.
bool has_descriptor(std::string_view name) {
    DIR* open = opendir("/proc/self/fd");
    if (open == nullptr) return true;
    bool found = false;
    while (const dirent* entry = readdir(open)) {
        char target[64];
        const ssize_t bytes = readlinkat(dirfd(open), entry->d_name, target, sizeof target);
        found |= bytes > 0 && std::string_view(target, static_cast<std::size_t>(bytes)).starts_with(name);
    }
    closedir(open);
    return found;
}

}  // namespace

std::uint64_t pinned_kib(std::string_view status) { return kib_behind("\nVmPin:", status); }
std::uint64_t locked_kib(std::string_view status) { return kib_behind("\nVmLck:", status); }

// CUDA's driver, ROCm, Level Zero and what stands on them; liburing registers buffers that the kernel then counts only for
// some users. Not OpenCL's loader, by which hwloc asks for devices: it loads one of these where there is one.
bool is_of_device(std::string_view library) {
    static constexpr std::string_view kNames[] = {
        "libcuda.so",      "libcudart.so",        "libamdhip64.so", "libhsa-runtime64.so",
        "libze_loader.so", "libnvidia-opencl.so", "libnccl.so",     "librccl.so",
        "libgdrapi.so",    "liburing.so",         "libspdk",        "libnvshmem"};
    return begins_with_one(library, kNames);
}

bool is_of_transport(std::string_view library) {
    static constexpr std::string_view kNames[] = {
        "libmpi",    "libpmpi",  "libopen-", "libmca",   "mca_",     "libucp",   "libuct",    "libucs",
        "libucm",    "libucc",   "ucx_",     "libhcoll", "libocoms", "libsharp", "libfabric", "libpsm",
        "libopx",    "libefa",   "libmlx4.", "libmlx5.", "libirdma", "libbnxt",  "libhfi1",   "libhns",
        "librdmacm", "libmana.", "librxe-",  "libsiw-",  "libpmix",  "libabt"};
    return begins_with_one(library, kNames) || library.find("-rdmav") != library.npos;
}

bool registers_memory(std::string_view library) {
    static constexpr std::string_view kNames[] = {"libibverbs.so", "librdmacm.so", "libfabric.so",
                                                  "libucp.so",     "libuct.so",    "libpsm2.so",
                                                  "libmlx5.so",    "liboshmem.so"};
    return begins_with_one(library, kNames);
}

bool may_have_pinned_memory() {
    const int saved = errno;
    const Loaded loaded = look_at_libraries();
    const bool any_pinned = own_kib(pinned_kib) != 0;
    errno = saved;
    if (loaded.device) return true;
    if (!any_pinned) return false;
    // Something is pinned. Where the machine has a network that pins memory, and nobody but the MPI library uses it, it is the
    // MPI library's.
    return loaded.registering || !has_pinning_network();
}

bool may_have_watched_memory() {
    const int saved = errno;
    const bool may = own_kib(locked_kib) != 0 || has_descriptor("anon_inode:[userfaultfd]");
    errno = saved;
    return may;
}

}  // namespace coco::os
