// SPDX-License-Identifier: BSD-3-Clause
//
// The table of families (lib/mpi/family.cc) and the parameters of functions (lib/mpi/functions.h) against the
// mpi.h and the library of the MPI that this is compiled for.
#include "mpi/family.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // what MPI 4.1 deprecates every library has

#include <dlfcn.h>
#include <mpi.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

#include "mpi/functions.h"
#include "support/check.h"

namespace {

namespace ours = coco::mpi;

#if defined(MPI_ABI_VERSION) && !defined(MPICH) && !defined(OPEN_MPI)
constexpr const char* kFamily = "MPI standard ABI";
#elif defined(OPEN_MPI)
constexpr const char* kFamily = "Open MPI";
#else
constexpr const char* kFamily = "MPICH";
#endif

const ours::Family& family() {
    for (const ours::Family& f : ours::families())
        if (std::strcmp(f.name, kFamily) == 0) return f;
    std::abort();
}

// ---- functions: each parameter is in the same register, and what it points to has the same width

template <class Ours>
struct IsHandle : std::false_type {};
template <class Kind>
struct IsHandle<ours::Handle<Kind>> : std::true_type {};

template <class Real, class Ours>
constexpr bool is_alike() {
    if constexpr (IsHandle<Ours>::value)
        return std::is_pointer_v<Real> || std::is_same_v<Real, int>;
    else if constexpr (std::is_function_v<std::remove_pointer_t<Ours>>)
        return std::is_pointer_v<Real> && std::is_function_v<std::remove_pointer_t<Real>>;
    else if constexpr (std::is_pointer_v<Ours> && !std::is_void_v<std::remove_pointer_t<Ours>>)
        return std::is_pointer_v<Real> &&
               (std::is_void_v<std::remove_pointer_t<Real>>
                    ? false
                    : sizeof(std::remove_pointer_t<Real>) == sizeof(std::remove_pointer_t<Ours>));
    else if constexpr (std::is_pointer_v<Ours>)
        return std::is_pointer_v<Real>;
    else
        return std::is_integral_v<Real> && sizeof(Real) == sizeof(Ours);
}

template <class Real, class Ours>
struct Alike : std::false_type {};
template <class... Real, class... Ours>
requires(sizeof...(Real) == sizeof...(Ours)) struct Alike<int (*)(Real...), int(Ours...)>
    : std::bool_constant<(is_alike<Real, Ours>() && ...)> {
};

namespace signatures {
using namespace coco::mpi;
#define COCO_SIGNATURE(name, parameters) using name##_ = int parameters;
COCO_MPI_FUNCTIONS(COCO_SIGNATURE)
COCO_MPI_FUNCTIONS_4(COCO_SIGNATURE)
#undef COCO_SIGNATURE
}  // namespace signatures

#define COCO_SAME(name, parameters)                                          \
    static_assert(Alike<decltype(&PMPI_##name), signatures::name##_>::value, \
                  "MPI_" #name " has other parameters than lib/mpi/functions.h says");
COCO_MPI_FUNCTIONS(COCO_SAME)
#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
COCO_MPI_FUNCTIONS_4(COCO_SAME)
#endif

static_assert(sizeof(MPI_Aint) == sizeof(ours::Aint) && sizeof(MPI_Count) == sizeof(ours::Count));
static_assert(MPI_SUCCESS == ours::kSuccess);
static_assert(MPI_MAX_LIBRARY_VERSION_STRING <= 8192);

// ---- values

template <class Handle>
std::uintptr_t bits_of(Handle handle) {
    std::uintptr_t bits = 0;
    std::memcpy(&bits, &handle, sizeof handle);
    return bits;
}

std::uintptr_t value_of(const ours::Predefined& handle) {
    return handle.object == nullptr ? handle.constant
                                    : reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, handle.object));
}

void check_handles() {
    const ours::PredefinedHandles& h = family().handles;
    CHECK(family().handle_bytes == sizeof(MPI_Comm) && sizeof(MPI_Comm) == sizeof(MPI_Datatype) &&
          sizeof(MPI_Comm) == sizeof(MPI_Request) && sizeof(MPI_Comm) == sizeof(MPI_Group));
    CHECK(value_of(h.comm_world) == bits_of(MPI_COMM_WORLD));
    CHECK(value_of(h.comm_self) == bits_of(MPI_COMM_SELF));
    CHECK(value_of(h.comm_null) == bits_of(MPI_COMM_NULL));
    CHECK(value_of(h.byte) == bits_of(MPI_BYTE));
    CHECK(value_of(h.int64) == bits_of(MPI_INT64_T));
    CHECK(value_of(h.datatype_null) == bits_of(MPI_DATATYPE_NULL));
    CHECK(value_of(h.min) == bits_of(MPI_MIN));
    CHECK(value_of(h.max) == bits_of(MPI_MAX));
    CHECK(value_of(h.errors_return) == bits_of(MPI_ERRORS_RETURN));
    CHECK(value_of(h.errors_are_fatal) == bits_of(MPI_ERRORS_ARE_FATAL));
}

void check_constants() {
    const ours::Constants& c = family().constants;
    CHECK(c.in_place == MPI_IN_PLACE && c.bottom == MPI_BOTTOM);
    CHECK(c.status_ignore == MPI_STATUS_IGNORE && c.statuses_ignore == MPI_STATUSES_IGNORE);
    CHECK(c.undefined == MPI_UNDEFINED);
    CHECK(c.any_source == MPI_ANY_SOURCE && c.any_tag == MPI_ANY_TAG);
    CHECK(c.keyval_invalid == MPI_KEYVAL_INVALID);
    CHECK(c.cart == MPI_CART && c.graph == MPI_GRAPH && c.dist_graph == MPI_DIST_GRAPH);
    CHECK(c.order_c == MPI_ORDER_C && c.order_fortran == MPI_ORDER_FORTRAN);
    CHECK(c.err_buffer == MPI_ERR_BUFFER && c.err_count == MPI_ERR_COUNT && c.err_arg == MPI_ERR_ARG &&
          c.err_truncate == MPI_ERR_TRUNCATE);
    CHECK(c.err_other == MPI_ERR_OTHER && c.err_no_mem == MPI_ERR_NO_MEM);
}

void check_combiners() {
    using ours::Combiner;
    auto number = [](Combiner combiner) { return family().constants.combiner[static_cast<int>(combiner)]; };
    CHECK(number(Combiner::named) == MPI_COMBINER_NAMED && number(Combiner::dup) == MPI_COMBINER_DUP);
    CHECK(number(Combiner::contiguous) == MPI_COMBINER_CONTIGUOUS);
    CHECK(number(Combiner::vector) == MPI_COMBINER_VECTOR &&
          number(Combiner::hvector) == MPI_COMBINER_HVECTOR);
    CHECK(number(Combiner::indexed) == MPI_COMBINER_INDEXED);
    CHECK(number(Combiner::hindexed) == MPI_COMBINER_HINDEXED);
    CHECK(number(Combiner::indexed_block) == MPI_COMBINER_INDEXED_BLOCK);
    CHECK(number(Combiner::hindexed_block) == MPI_COMBINER_HINDEXED_BLOCK);
    CHECK(number(Combiner::structure) == MPI_COMBINER_STRUCT);
    CHECK(number(Combiner::subarray) == MPI_COMBINER_SUBARRAY);
    CHECK(number(Combiner::resized) == MPI_COMBINER_RESIZED);
    CHECK(number(Combiner::f90_real) == MPI_COMBINER_F90_REAL);
    CHECK(number(Combiner::f90_complex) == MPI_COMBINER_F90_COMPLEX);
    CHECK(number(Combiner::f90_integer) == MPI_COMBINER_F90_INTEGER);
}

void check_status() {
    const ours::StatusLayout& s = family().status;
    CHECK(s.bytes == sizeof(MPI_Status) && s.tag_at == offsetof(MPI_Status, MPI_TAG));
}

// A marker is of its own family alone, and the version string tells whose ways a library has.
void check_marks() {
    if (family().marker != nullptr) CHECK(dlsym(RTLD_DEFAULT, family().marker) != nullptr);
    if (std::strcmp(kFamily, "Open MPI") == 0) CHECK(dlsym(RTLD_DEFAULT, "MPI_UNWEIGHTED") == nullptr);
    if (std::strcmp(kFamily, "MPICH") == 0) CHECK(dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") == nullptr);
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    const bool is_open_mpi = std::string(version).find("Open MPI") != std::string::npos;
    CHECK(ours::manners_of(family(), version).refuses_aliases == !is_open_mpi);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    check_handles();
    check_constants();
    check_combiners();
    check_status();
    check_marks();
    const int status = test::finish("family_test");
    MPI_Finalize();
    return status;
}
