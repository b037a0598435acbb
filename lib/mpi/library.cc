// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "os/process.h"

namespace coco::mpi {

std::size_t g_handle_bytes = sizeof(void*);
std::uintptr_t g_handle_mask = ~std::uintptr_t{0};

namespace internal {
Library g_library{};
std::atomic<const Library*> g_served{nullptr};
}  // namespace internal

namespace {

// Whether a library has the standard ABI, of which there is version 1. MPICH 4.3 has a library of its draft,
// with other numbers, that says nothing here; libraries of other ABIs say -1.
bool is_of_standard_abi(void* handle) {
    auto* const version = reinterpret_cast<int (*)(int*, int*)>(dlsym(handle, "MPI_Abi_get_version"));
    int major = -1, minor = -1;
    return version != nullptr && version(&major, &minor) == kSuccess && major == 1;
}
bool has_name_of_standard_abi(std::string_view path) {
    return path.substr(path.rfind('/') + 1).starts_with("libmpi_abi.");
}

}  // namespace

// The standard's first: Open MPI's library of that ABI brings the objects of its own ABI along.
const Family* family_of(const char* file, void* handle) {
    const bool is_standard = is_of_standard_abi(handle);
    if (!is_standard && has_name_of_standard_abi(file)) return nullptr;
    for (const Family& family : families())
        if (family.marker == nullptr ? is_standard : dlsym(handle, family.marker) != nullptr) return &family;
    return nullptr;
}

namespace {

using internal::g_library;
using internal::g_served;

std::mutex& lock_of_publishing() {
    static auto* lock = new std::mutex;
    return *lock;
}
std::atomic<os::Object> g_object{nullptr};  // the library that is served
std::atomic<bool> g_alone{false};

// One line of the job says why, not one of every rank.
void leave_alone(const base::Text& why) {
    if (g_alone.exchange(true)) return;
    if (os::launched_rank() > 0) return;
    COCO_LOG(warn, why.view() << ": all calls are left to MPI");
}

// All loaded objects that define MPI functions, in the loader's order, without our own doors, and without
// others if there are any.
std::vector<os::Object> mpi_objects(os::Object doors = nullptr) {
    std::vector<os::Object> objects;
    for (os::Object o = os::definer("PMPI_Alltoall"); o != nullptr; o = os::definer("PMPI_Alltoall", o))
        if (o != os::own_object() && o != doors) objects.push_back(o);
    return objects;
}

const char* file_of(os::Object object) {
    const char* file = os::file_of(object);
    return file != nullptr && *file != '\0' ? file : "the program itself";
}

void* handle_of(os::Object object) {
    const char* file = os::file_of(object);
    if (file == nullptr) return nullptr;
    return dlopen(*file != '\0' ? file : nullptr, RTLD_NOLOAD | RTLD_LAZY);
}

// A program that names an object may hold the copy that counts (copy relocation): the global scope knows it.
std::uintptr_t value_of(const Predefined& handle, void* library) {
    if (handle.object == nullptr) return handle.constant;
    void* global = dlsym(RTLD_DEFAULT, handle.object);
    return reinterpret_cast<std::uintptr_t>(global != nullptr ? global : dlsym(library, handle.object));
}

void fill_handles(Library& library, void* handle) {
    const PredefinedHandles& handles = library.family->handles;
    auto fill = [&](auto& member, const Predefined& from) { member.bits = value_of(from, handle); };
    fill(library.comm_world, handles.comm_world);
    fill(library.comm_self, handles.comm_self);
    fill(library.comm_null, handles.comm_null);
    fill(library.byte, handles.byte);
    fill(library.int64, handles.int64);
    fill(library.datatype_null, handles.datatype_null);
    fill(library.min, handles.min);
    fill(library.max, handles.max);
    fill(library.errors_return, handles.errors_return);
    fill(library.errors_are_fatal, handles.errors_are_fatal);
}

// Returns: the name of a function that the library lacks, or null.
const char* fill_functions(Library& library, void* handle) {
    const char* lacking = nullptr;
    auto find = [&](auto& member, const char* name) {
        member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(dlsym(handle, name));
        return member != nullptr;
    };
#define COCO_MPI_FILL(name, parameters) \
    if (!find(library.name, "PMPI_" #name)) lacking = "PMPI_" #name;
    COCO_MPI_FUNCTIONS(COCO_MPI_FILL)
#undef COCO_MPI_FILL
#define COCO_MPI_FILL(name, parameters) find(library.name, "PMPI_" #name);
    COCO_MPI_FUNCTIONS_4(COCO_MPI_FILL)
#undef COCO_MPI_FILL
    return lacking;
}

// Returns: whether this library can be served.
bool fill(Library& library, os::Object object) {
    void* handle = handle_of(object);
    library.file = file_of(object);
    library.family = handle != nullptr ? family_of(library.file, handle) : nullptr;
    if (library.family == nullptr) {
        leave_alone(base::Text() << library.file << " is of no MPI family that libcoco knows");
        return false;
    }
    if (const char* lacking = fill_functions(library, handle)) {
        leave_alone(base::Text() << library.file << " has no " << lacking);
        return false;
    }
    fill_handles(library, handle);
    library.constants = library.family->constants;
    library.status = library.family->status;
    library.manners = manners_of(*library.family, version_of(library).c_str());
    COCO_LOG(debug, library.family->name << " functions from " << library.file);
    return true;
}

void leave_two_alone(os::Object one, os::Object other) {
    leave_alone(base::Text() << "two MPI libraries are in this process, " << file_of(one) << " and "
                             << file_of(other));
}

}  // namespace

namespace {

// The first thread that comes here makes it the library of the process.
void publish(const Library& library, os::Object object) {
    std::lock_guard lock(lock_of_publishing());
    if (g_served.load(std::memory_order_relaxed) != nullptr || g_alone.load(std::memory_order_relaxed))
        return;
    COCO_CHECK(library.family != nullptr && library.file != nullptr,
               "a library that is served has a family and a file");
    COCO_CHECK(library.family->handle_bytes == 4 || library.family->handle_bytes == 8,
               "a handle is half a register, or a whole one");
    g_library = library;
    g_object.store(object, std::memory_order_relaxed);
    g_handle_bytes = library.family->handle_bytes;
    g_handle_mask = ~std::uintptr_t{0} >> 8 * (sizeof(std::uintptr_t) - g_handle_bytes);
    g_served.store(&g_library, std::memory_order_release);  // pairs with the acquire in served()
}

}  // namespace

// Without a lock until the end: the dynamic linker has one of its own, and whoever holds that may come here.
const Library* internal::find_library(os::Object doors) {
    if (g_alone.load(std::memory_order_relaxed)) return nullptr;
    const std::vector<os::Object> objects = mpi_objects(doors);
    Library library{};
    if (objects.size() > 1)
        leave_two_alone(objects[0], objects[1]);
    else if (!objects.empty() && fill(library, objects[0]))
        publish(library, objects[0]);
    return g_served.load(std::memory_order_acquire);
}

void look_again() {
    const os::Object served = g_object.load(std::memory_order_relaxed);
    if (served == nullptr) return;
    for (os::Object object : mpi_objects()) {
        if (object == served) continue;
        leave_two_alone(served, object);
        g_served.store(nullptr, std::memory_order_release);
    }
}

void* next_function(const char* name) { return dlsym(RTLD_NEXT, name); }

namespace {

bool is_ours(const void* function) {
    Dl_info ours{}, its{};
    return dladdr(reinterpret_cast<const void*>(&internal::find_library), &ours) != 0 &&
           dladdr(function, &its) != 0 && ours.dli_fbase == its.dli_fbase;
}

}  // namespace

void* left_alone(const char* name, const void* caller) {
    if (void* next = dlsym(RTLD_NEXT, name)) return next;
    // A library that was opened in a local scope: its users' own dependencies lead to it.
    Dl_info where{};
    if (dladdr(caller, &where) != 0 && where.dli_fname != nullptr)
        if (void* object = dlopen(where.dli_fname, RTLD_NOLOAD | RTLD_LAZY))
            if (void* found = dlsym(object, name); found != nullptr && !is_ours(found)) return found;
    for (os::Object object : mpi_objects())
        if (void* handle = handle_of(object))
            if (void* found = dlsym(handle, name)) return found;
    stop_lacking(name);
}

void stop_lacking(const char* name) {
    constexpr int kLoaderFails = 127;
    base::log(base::LogLevel::error, base::Text() << "the MPI library has no " << name);
    _exit(kLoaderFails);
}

void stop_job(Comm comm, int error, const base::Text& line) {
    base::log_last(line);
    lib().Abort(comm, error);
    __builtin_trap();
}

Combiner combiner_of(int number) {
    const auto& numbers = lib().constants.combiner;
    const auto found = std::find(std::begin(numbers), std::end(numbers), number);
    return found == std::end(numbers) ? Combiner::other : static_cast<Combiner>(found - std::begin(numbers));
}

bool has_world() {
    int initialized = 0;
    lib().Initialized(&initialized);
    return initialized != 0;
}

int world_rank() {
    int rank = 0;
    lib().Comm_rank(lib().comm_world, &rank);
    return rank;
}

int world_ranks() {
    int ranks = 1;
    lib().Comm_size(lib().comm_world, &ranks);
    return ranks;
}

bool on_all_ranks(Comm comm, bool mine) {
    std::uint64_t least = mine ? 1 : 0, of_all = 0;
    lib().Allreduce(&least, &of_all, 1, lib().int64, lib().min, comm);
    return of_all != 0;
}

std::string version_of(const Library& library) {
    constexpr std::size_t kMostBytes = 8192;  // the largest MPI_MAX_LIBRARY_VERSION_STRING of all families
    std::string text(kMostBytes, '\0');
    int length = 0;
    if (library.Get_library_version(text.data(), &length) != kSuccess) return {};
    text.resize(std::min(text.find('\0'), text.find('\n')));
    std::ranges::replace(text, '\t', ' ');
    return text;
}

}  // namespace coco::mpi
