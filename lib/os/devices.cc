// SPDX-License-Identifier: BSD-3-Clause
#include "os/devices.h"

#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>

#include "base/index.h"
#include "base/kept_errno.h"
#include "os/process.h"
#include "os/process_memory.h"
#include "os/symbols.h"

namespace coco::os {
namespace {

// The functions of CUDA's driver that are asked, as its interface has them; null: it has none of that name.
using DeviceAddress = unsigned long long;
struct Cuda {
    int (*pointer_attribute)(void* value, int attribute, DeviceAddress address);
    int (*current_context)(void** context);
    int (*device_count)(int* count);
    int (*primary_state)(int device, unsigned* flags, int* is_active);
};
constexpr int kSuccess = 0, kInvalidValue = 1, kNotInitialized = 3, kDeinitialized = 4;
constexpr int kMemoryType = 2;                       // an attribute
constexpr unsigned kOnHost = 1;                      // a value of it
constinit std::atomic<const Cuda*> g_cuda{nullptr};  // once it is loaded
constinit std::atomic<bool> g_asks_kernel{false};    // some memory of devices only the kernel can tell
constinit std::atomic<unsigned long long> g_looked_at{0};

struct LoadedRuntimes {
    const char* cuda = nullptr;  // the file of CUDA's driver
    bool other = false;
    unsigned long long objects = 0;  // loaded so far, in all; 0: as many as were looked at last
};

// Stops where no object was loaded since it looked last, and there was no runtime.
LoadedRuntimes loaded_runtimes() {
    LoadedRuntimes loaded;
    any_object([&loaded](const dl_phdr_info& object) {
        if (object.dlpi_adds == g_looked_at.load(std::memory_order_relaxed)) return true;
        loaded.objects = object.dlpi_adds;
        std::string_view name = object.dlpi_name != nullptr ? object.dlpi_name : "";
        name.remove_prefix(name.rfind('/') + 1);
        const Runtime runtime = runtime_of(name);
        if (runtime == Runtime::cuda) loaded.cuda = object.dlpi_name;
        loaded.other |= runtime == Runtime::other;
        return false;
    });
    return loaded;
}

// Requires: the driver is loaded. (It is never unloaded then.)
const Cuda* find_cuda(const char* file) {
    static const Cuda cuda = [file] {
        Cuda found{};
        void* driver = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
        if (driver == nullptr) return found;
        auto find = [&](auto& member, const char* name) {
            member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(dlsym(driver, name));
        };
        find(found.pointer_attribute, "cuPointerGetAttribute");
        find(found.current_context, "cuCtxGetCurrent");
        find(found.device_count, "cuDeviceGetCount");
        find(found.primary_state, "cuDevicePrimaryCtxGetState");
        return found;
    }();
    return &cuda;
}

bool has_open_device() {
    DIR* open = opendir("/proc/self/fd");
    if (open == nullptr) return false;
    bool found = false;
    while (const dirent* entry = readdir(open)) {
        char file[64];
        const ssize_t bytes = readlinkat(dirfd(open), entry->d_name, file, sizeof file);
        found |= bytes > 0 && is_device_file({file, base::index(bytes)});
    }
    closedir(open);
    return found;
}

bool has_cuda_context(const Cuda& cuda) {
    if (cuda.current_context == nullptr || cuda.device_count == nullptr || cuda.primary_state == nullptr)
        return true;
    void* context = nullptr;
    if (cuda.current_context(&context) == kSuccess && context != nullptr) return true;
    int devices = 0;
    if (cuda.device_count(&devices) != kSuccess) return false;
    for (int device = 0; device < devices; ++device) {
        unsigned flags = 0;
        int is_active = 0;
        if (cuda.primary_state(device, &flags, &is_active) == kSuccess && is_active != 0) return true;
    }
    return false;
}

}  // namespace

// What is mapped while it looks is looked at the next time. A thread that comes meanwhile looks for itself.
bool find_devices() {
    const base::KeptErrno kept;
    auto state = Devices::expected;
    g_devices.compare_exchange_strong(state, Devices::looking, std::memory_order_relaxed);
    const LoadedRuntimes loaded = loaded_runtimes();
    if (loaded.cuda == nullptr && !loaded.other && loaded.objects != 0)
        g_looked_at.store(loaded.objects, std::memory_order_relaxed);
    if (loaded.cuda != nullptr) g_cuda.store(find_cuda(loaded.cuda), std::memory_order_release);
    const Cuda* cuda = g_cuda.load(std::memory_order_relaxed);
    const bool uses_other = loaded.other && has_open_device();
    if (uses_other || (cuda != nullptr && cuda->pointer_attribute == nullptr))
        g_asks_kernel.store(true, std::memory_order_relaxed);
    const bool found = cuda != nullptr || uses_other;
    state = Devices::looking;
    if (found)
        g_devices.store(Devices::present, std::memory_order_release);  // pairs with may_have_devices()
    else
        g_devices.compare_exchange_strong(state, Devices::none, std::memory_order_relaxed);
    return found;
}

bool is_on_device(const void* address) {
    const base::KeptErrno kept;
    const Cuda* cuda = g_cuda.load(std::memory_order_acquire);  // pairs with find_devices()
    bool is = false, asks_kernel = g_asks_kernel.load(std::memory_order_relaxed);
    if (cuda != nullptr && cuda->pointer_attribute != nullptr) {
        unsigned type = 0;
        const int result =
            cuda->pointer_attribute(&type, kMemoryType, reinterpret_cast<std::uintptr_t>(address));
        is = result == kSuccess && type != kOnHost;
        asks_kernel |= result != kSuccess && result != kInvalidValue && result != kNotInitialized &&
                       result != kDeinitialized;
    }
    return is || (asks_kernel && is_out_of_reach(address));
}

bool uses_device() {
    if (!may_have_devices()) return false;
    if (g_asks_kernel.load(std::memory_order_relaxed)) return true;
    return has_cuda_context(*g_cuda.load(std::memory_order_acquire));  // pairs with find_devices()
}

Runtime runtime_of(std::string_view library) {
    if (library.starts_with("libcuda.so")) return Runtime::cuda;
    for (const std::string_view name : {"libamdhip64.so", "libhsa-runtime64.so", "libze_loader.so"})
        if (library.starts_with(name)) return Runtime::other;
    return Runtime::none;
}

bool is_device_file(std::string_view file) { return file == "/dev/kfd" || file.starts_with("/dev/dri/"); }

bool is_out_of_reach(const void* address) {
    std::byte any;
    return !read_process(own_thread(), address, &any, 1) && errno == EFAULT;
}

}  // namespace coco::os
