// SPDX-License-Identifier: BSD-3-Clause
#include "comm/mpi_table.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string_view>

#include "base/log.h"

namespace coco::comm {
namespace {

#ifdef OPEN_MPI
constexpr const char* kFlavour = "Open MPI";
constexpr const char* kNames[] = {"libmpi.so.40", "libmpi.so.80", "libmpi.so.20"};
constexpr const char* kMark = "ompi_mpi_comm_world";
constexpr const char* kOtherMark = "MPIR_F08_MPI_IN_PLACE";
constexpr const char* kOtherNames[] = {"libmpich.so.12", "libmpi.so.12"};
#else
constexpr const char* kFlavour = "MPICH";
constexpr const char* kNames[] = {"libmpich.so.12", "libmpi.so.12", "libmpi_cray.so.12"};
constexpr const char* kMark = "PMPI_Alltoall";
constexpr const char* kOtherMark = "ompi_mpi_comm_world";
constexpr const char* kOtherNames[] = {"libmpi.so.40", "libmpi.so.80"};
#endif

struct Found {
    void* handle = nullptr;
    const char* name = nullptr;
};

void* open_loaded(const char* name) {
    void* handle = dlopen(name, RTLD_NOLOAD | RTLD_LAZY);
    if (handle == nullptr) return nullptr;
    if (dlsym(handle, kMark) == nullptr || dlsym(handle, "PMPI_Alltoall") == nullptr ||
        dlsym(handle, kOtherMark) != nullptr) {
        dlclose(handle);
        return nullptr;
    }
    return handle;
}

// Any loaded object whose file name starts with libmpi: renamed MPI libraries are found that way.
int look_at_object(dl_phdr_info* info, std::size_t, void* data) {
    std::string_view path(info->dlpi_name);
    std::string_view file = path.substr(path.rfind('/') + 1);
    if (file.substr(0, 6) != "libmpi") return 0;
    auto* found = static_cast<Found*>(data);
    *found = {open_loaded(info->dlpi_name), info->dlpi_name};
    return found->handle != nullptr;
}

Found find_library() {
    for (const char* name : kNames)
        if (void* handle = open_loaded(name)) return {handle, name};
    Found found;
    dl_iterate_phdr(look_at_object, &found);
    return found;
}

[[noreturn]] void stop(const base::Text& line) {
    base::log(base::LogLevel::error, line);
    _exit(1);
}

[[noreturn]] void stop_without_library() {
    for (const char* name : kOtherNames)
        if (dlopen(name, RTLD_NOLOAD | RTLD_LAZY) != nullptr)
            stop(base::Text() << "this libcoco.so serves " << kFlavour << ", but the program uses " << name
                              << ": preload the libcoco.so of that MPI, or start the program by `coco run`");
    stop(base::Text() << "this libcoco.so serves " << kFlavour << ", but no such MPI library is loaded");
}

void* symbol(const Found& library, const char* name) {
    void* address = dlsym(library.handle, name);
    if (address == nullptr)
        stop(base::Text() << library.name << " has no " << name << ": it is too old or no MPI");
    return address;
}

void fill_handles(MpiTable& table, [[maybe_unused]] const Found& library) {
#ifdef OPEN_MPI
    // A program that names an object may hold the copy that counts (copy relocation): the global scope knows
    // it.
    auto at = [&](const char* name) {
        void* global = dlsym(RTLD_DEFAULT, name);
        return global != nullptr ? global : symbol(library, name);
    };
    table.comm_world = static_cast<MPI_Comm>(at("ompi_mpi_comm_world"));
    table.comm_self = static_cast<MPI_Comm>(at("ompi_mpi_comm_self"));
    table.comm_null = static_cast<MPI_Comm>(at("ompi_mpi_comm_null"));
    table.byte = static_cast<MPI_Datatype>(at("ompi_mpi_byte"));
    table.uint64 = static_cast<MPI_Datatype>(at("ompi_mpi_uint64_t"));
    table.datatype_null = static_cast<MPI_Datatype>(at("ompi_mpi_datatype_null"));
    table.min = static_cast<MPI_Op>(at("ompi_mpi_op_min"));
    table.max = static_cast<MPI_Op>(at("ompi_mpi_op_max"));
    table.errors_return = static_cast<MPI_Errhandler>(at("ompi_mpi_errors_return"));
    table.errors_are_fatal = static_cast<MPI_Errhandler>(at("ompi_mpi_errors_are_fatal"));
#else
    table.comm_world = MPI_COMM_WORLD;
    table.comm_self = MPI_COMM_SELF;
    table.comm_null = MPI_COMM_NULL;
    table.byte = MPI_BYTE;
    table.uint64 = MPI_UINT64_T;
    table.datatype_null = MPI_DATATYPE_NULL;
    table.min = MPI_MIN;
    table.max = MPI_MAX;
    table.errors_return = MPI_ERRORS_RETURN;
    table.errors_are_fatal = MPI_ERRORS_ARE_FATAL;
#endif
}

void fill(MpiTable& table) {
    Found library = find_library();
    if (library.handle == nullptr) stop_without_library();
#define COCO_MPI_FILL(name) \
    table.name = reinterpret_cast<decltype(table.name)>(symbol(library, "PMPI_" #name));
    COCO_MPI_FUNCTIONS(COCO_MPI_FILL)
#undef COCO_MPI_FILL
    // MPI 4's functions may be missing in an older library of the same ABI: then no caller can ask for them.
#define COCO_MPI_FILL(name) \
    table.name = reinterpret_cast<decltype(table.name)>(dlsym(library.handle, "PMPI_" #name));
    COCO_MPI_FUNCTIONS_4(COCO_MPI_FILL)
#undef COCO_MPI_FILL
    fill_handles(table, library);
    table.library = library.name;
    COCO_LOG(debug, "MPI functions from " << library.name);
}

MpiTable g_table;
std::atomic<bool> g_filled{false};

}  // namespace

const MpiTable& mpi() {
    // Acquire pairs with the release below.
    if (!g_filled.load(std::memory_order_acquire)) [[unlikely]] {
        static std::mutex filling;
        std::lock_guard lock(filling);
        if (!g_filled.load(std::memory_order_relaxed)) {
            fill(g_table);
            g_filled.store(true, std::memory_order_release);
        }
    }
    return g_table;
}

void* next_function(const char* name) { return dlsym(RTLD_NEXT, name); }

}  // namespace coco::comm
