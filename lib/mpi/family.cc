// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/family.h"

#include <climits>
#include <cstring>

namespace coco::mpi {
namespace {

constexpr int kNone = INT_MIN;

constexpr const char* kMpichNames[] = {"libmpich.so.12",    "libmpi.so.12",     "libmpi.so.0",
                                       "libmpi_cray.so.12", "libmpi_gnu.so.12", "libmpi_intel.so.12"};
constexpr const char* kOpenMpiNames[] = {"libmpi.so.40", "libmpi.so.80", "libmpi.so.20"};
constexpr const char* kStandardNames[] = {"libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi_abi.so.12"};

constexpr Manners kMpichManners{.refuses_aliases = true,
                                .refuses_short_bcasts = true,
                                .takes_nothing_of_no_type = true,
                                .makes_one_comm_at_a_time = false,
                                .exchanges_are_slow = true};
constexpr Manners kOpenMpiManners{.refuses_aliases = false,
                                  .refuses_short_bcasts = false,
                                  .takes_nothing_of_no_type = false,
                                  .makes_one_comm_at_a_time = true,
                                  .exchanges_are_slow = false};

const void* address(std::intptr_t value) { return reinterpret_cast<const void*>(value); }
void* status_at(std::intptr_t value) { return reinterpret_cast<void*>(value); }

Predefined is(std::uintptr_t constant) { return {.constant = constant}; }
Predefined object(const char* name) { return {.object = name}; }

// The values in mpi.h.in of MPICH 3.2 to 5.0.1.
Family mpich() {
    return {
        .name = "MPICH",
        .library_names = kMpichNames,
        .marker = "MPI_UNWEIGHTED",  // an object by its mpi.h; a constant elsewhere
        .handle_bytes = 4,
        .handles = {.comm_world = is(0x44000000),
                    .comm_self = is(0x44000001),
                    .comm_null = is(0x04000000),
                    .byte = is(0x4c00010d),
                    .int64 = is(0x4c00083a),
                    .datatype_null = is(0x0c000000),
                    .min = is(0x58000002),
                    .max = is(0x58000001),
                    .errors_return = is(0x54000001),
                    .errors_are_fatal = is(0x54000000)},
        .constants = {.in_place = address(-1),
                      .bottom = address(0),
                      .status_ignore = status_at(1),
                      .statuses_ignore = status_at(1),
                      .undefined = -32766,
                      .any_source = -2,
                      .any_tag = -1,
                      .keyval_invalid = 0x24000000,
                      .cart = 2,
                      .graph = 1,
                      .dist_graph = 3,
                      .order_c = 56,
                      .order_fortran = 57,
                      .err_buffer = 1,
                      .err_count = 2,
                      .err_arg = 12,
                      .err_truncate = 14,
                      .err_other = 15,
                      .err_no_mem = 34,
                      .combiner = {kNone, 1, 2, 3, 4, 6, 7, 9, 10, 19, 12, 13, 18, 15, 16, 17}},
        .status = {.bytes = 20, .tag_at = 12},
        .manners = kMpichManners,
    };
}

// The values in mpi.h.in of Open MPI 3.1 to 6.0.
Family open_mpi() {
    return {
        .name = "Open MPI",
        .library_names = kOpenMpiNames,
        .marker = "ompi_mpi_comm_world",
        .handle_bytes = 8,
        .handles = {.comm_world = object("ompi_mpi_comm_world"),
                    .comm_self = object("ompi_mpi_comm_self"),
                    .comm_null = object("ompi_mpi_comm_null"),
                    .byte = object("ompi_mpi_byte"),
                    .int64 = object("ompi_mpi_int64_t"),
                    .datatype_null = object("ompi_mpi_datatype_null"),
                    .min = object("ompi_mpi_op_min"),
                    .max = object("ompi_mpi_op_max"),
                    .errors_return = object("ompi_mpi_errors_return"),
                    .errors_are_fatal = object("ompi_mpi_errors_are_fatal")},
        .constants = {.in_place = address(1),
                      .bottom = address(0),
                      .status_ignore = status_at(0),
                      .statuses_ignore = status_at(0),
                      .undefined = -32766,
                      .any_source = -1,
                      .any_tag = -1,
                      .keyval_invalid = -1,
                      .cart = 1,
                      .graph = 2,
                      .dist_graph = 3,
                      .order_c = 0,
                      .order_fortran = 1,
                      .err_buffer = 1,
                      .err_count = 2,
                      .err_arg = 13,
                      .err_truncate = 15,
                      .err_other = 16,
                      .err_no_mem = 39,
                      .combiner = {kNone, 0, 1, 2, 3, 5, 6, 8, 9, 18, 11, 12, 17, 14, 15, 16}},
        .status = {.bytes = 24, .tag_at = 4},
        .manners = kOpenMpiManners,
    };
}

// The values that the MPI Forum publishes for MPI 5.0: chapter 20 of the standard, and the Forum's own mpi.h.
Family standard() {
    return {
        .name = "MPI standard ABI",
        .library_names = kStandardNames,
        .marker = nullptr,
        .handle_bytes = 8,
        .handles = {.comm_world = is(0x101),
                    .comm_self = is(0x102),
                    .comm_null = is(0x100),
                    .byte = is(0x247),
                    .int64 = is(0x258),
                    .datatype_null = is(0x200),
                    .min = is(0x22),
                    .max = is(0x23),
                    .errors_return = is(0x143),
                    .errors_are_fatal = is(0x141)},
        .constants = {.in_place = address(1),
                      .bottom = address(0),
                      .status_ignore = status_at(0),
                      .statuses_ignore = status_at(0),
                      .undefined = -32766,
                      .any_source = -1,
                      .any_tag = -2,
                      .keyval_invalid = 0,
                      .cart = 211,
                      .graph = 212,
                      .dist_graph = 213,
                      .order_c = 12,
                      .order_fortran = 15,
                      .err_buffer = 1,
                      .err_count = 2,
                      .err_arg = 13,
                      .err_truncate = 15,
                      .err_other = 16,
                      .err_no_mem = 39,
                      .combiner = {kNone, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 116, 113,
                                   114, 115}},
        .status = {.bytes = 32, .tag_at = 4},
        .manners = kMpichManners,
    };
}

}  // namespace

std::span<const Family> families() {
    static const Family all[] = {standard(), open_mpi(), mpich()};
    return all;
}

const Manners& manners_of(const Family& family, const char* version) {
    return std::strstr(version, "Open MPI") != nullptr ? kOpenMpiManners : family.manners;
}

}  // namespace coco::mpi
