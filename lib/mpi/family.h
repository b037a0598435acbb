// SPDX-License-Identifier: BSD-3-Clause
//
// The differences between the families of MPI libraries. A family is the MPI libraries of one ABI: a program
// that was built for one of them runs with every other. This table is all that libcoco knows of them; mpi.h
// is included nowhere. A test compares it with every real mpi.h that it finds (tests/mpi/family_test.cc).
// Called by mpi/library.cc, which chooses the family of a process, and by the command. Thread safety:
// constants.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "mpi/handles.h"

namespace coco::mpi {

// How a datatype was made. `other`: in a way that libcoco does not look into.
enum class Combiner {
    other,
    named,
    dup,
    contiguous,
    vector,
    hvector,
    indexed,
    hindexed,
    indexed_block,
    hindexed_block,
    structure,
    subarray,
    resized,
    f90_real,
    f90_complex,
    f90_integer,
};
inline constexpr int kCombiners = 16;

// A predefined handle: a constant, or the address of an object of the library's.
struct Predefined {
    std::uintptr_t constant = 0;
    const char* object = nullptr;
};

struct PredefinedHandles {
    Predefined comm_world, comm_self, comm_null, byte, int64, datatype_null, min, max, errors_return,
        errors_are_fatal;
};

// The values of MPI's constants other than handles.
struct Constants {
    const void *in_place, *bottom;
    void *status_ignore, *statuses_ignore;
    int undefined, any_source, any_tag, keyval_invalid;
    int cart, graph, dist_graph;
    int order_c, order_fortran;
    int err_buffer, err_count, err_arg, err_truncate, err_other, err_no_mem;
    int combiner[kCombiners];  // by Combiner; that of `other` is a number that no library has
};

// How large MPI_Status is, and where its tag lies, in bytes.
struct StatusLayout {
    std::size_t bytes, tag_at;
};

// How a library behaves where the standard leaves it open, or where it does not keep to it. Libraries of the
// standard ABI come from the makers of either of the others: they are told apart by their version strings.
struct Manners {
    bool refuses_aliases;           // a send buffer that is the receive buffer is an error
    bool refuses_short_bcasts;      // so is a bcast that brings less than there is room for
    bool takes_nothing_of_no_type;  // blocks of nothing may be of MPI_DATATYPE_NULL
    bool makes_one_comm_at_a_time;  // one communicator at a time comes into being in a process
    bool exchanges_are_slow;        // small ones take so much time that ours soon win (comm/find.cc)
};

struct Family {
    const char* name;  // for people
    // The names of its library, of the versions that are known. A library of another name is found, too, by
    // what it defines.
    std::span<const char* const> library_names;
    // An object that every library of the family defines, and no library of a family that stands behind this
    // one. Null: the standard's, whose libraries say so when they are asked (MPI_Abi_get_version).
    const char* marker;
    std::size_t handle_bytes;
    PredefinedHandles handles;
    Constants constants;
    StatusLayout status;
    Manners manners;
};

// All families, the one that has to be looked for first before the others.
std::span<const Family> families();

// Which constants differ from those of Family::manners for a library of this version string.
const Manners& manners_of(const Family& family, const char* version);

}  // namespace coco::mpi
