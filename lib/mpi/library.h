// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI library of this process: its functions, handles and constants, taken from the library itself once
// it is loaded: linked, preloaded, or opened late and in a local scope (Python). libcoco has no undefined MPI
// symbol, so that it loads into any process, and its own calls never come back to its doors.
//
// An MPI library that belongs to no family, one that lacks a function, and two MPI libraries in one process
// are left alone: a line says so, and the doors pass every call on to where it would have gone.
//
// Called by the doors (served(), start_again(), passed_on()) and by all that calls MPI (lib()). Thread
// safety: any thread. What lib() gives is fixed from the first time that served() gave something.
#pragma once
#include <atomic>
#include <string>

#include "base/check.h"
#include "base/text.h"
#include "mpi/family.h"
#include "mpi/functions.h"
#include "os/symbols.h"

namespace coco::mpi {

struct Library {
#define COCO_MPI_MEMBER(name, parameters) int(*name) parameters;
    COCO_MPI_FUNCTIONS(COCO_MPI_MEMBER)
    COCO_MPI_FUNCTIONS_4(COCO_MPI_MEMBER)
#undef COCO_MPI_MEMBER
    Comm comm_world, comm_self, comm_null;
    // Numbers without a sign travel as int64, too: MPICH 4.0's MPI_MIN and MPI_MAX compare MPI_UINT64_T as if
    // it had one.
    Datatype byte, int64, datatype_null;
    Op min, max;
    Errhandler errors_return, errors_are_fatal;
    Constants constants;
    StatusLayout status;
    Manners manners;
    const Family* family;
    const char* file;  // the file that it came from
};

namespace internal {
extern Library g_library;
extern std::atomic<const Library*> g_served;
const Library* find_library(os::Object doors);
}  // namespace internal

// The library that libcoco serves in this process; looked for at the first call. Returns: null if all calls
// are to be left alone. Requires: MPI is loaded, as it is when a door is called.
inline const Library* served() {
    const Library* library = internal::g_served.load(std::memory_order_acquire);  // pairs with its release
    return library != nullptr ? library : internal::find_library(nullptr);
}

// The same for a program that has this room to itself and libcoco loaded beside it, as the command has when
// it tunes: `doors` is libcoco, whose MPI functions do not make it an MPI library.
inline const Library* served_beside(os::Object doors) { return internal::find_library(doors); }

// The same, without a look. Requires: served() gave it before, in this or in a thread that this one heard
// from.
inline const Library& lib() {
    COCO_CHECK_DEAR(internal::g_library.family != nullptr, "an MPI library is in use once it was served");
    return internal::g_library;
}

// Before MPI is initialized: looks whether a second MPI library has come into the process, whose calls would
// come to our doors too.
void look_again();

// The next definition of a function after ours in the loader's order (another tool's, or the library's), by
// its MPI_ name; null where there is none. For passing calls on so that tools below us see them.
void* next_function(const char* name);
// The same where served() gives nothing, for a caller that lives at address `caller`: what its call would
// have reached without libcoco. Never null: ends the process with a line, as the loader would, if the caller
// has no such function.
void* left_alone(const char* name, const void* caller);
// Ends the process with a line, as the loader would: the library has no such function.
[[noreturn]] void stop_lacking(const char* name);
// Ends the job of a communicator with a line: MPI_Abort gets this error class.
[[noreturn]] void stop_job(Comm comm, int error, const base::Text& line);

// The family of a library that defines MPI functions, by what it defines and by the name of its file; null:
// none that libcoco knows.
const Family* family_of(const char* file, void* handle);
// The sort of a combiner that the library gave.
Combiner combiner_of(int number);

// Whether MPI_COMM_WORLD is there; a program of sessions alone has none.
bool has_world();
// The number of this process in MPI_COMM_WORLD, and how many there are. Requires: has_world().
int world_rank();
int world_ranks();
// Whether something is so on all ranks of a communicator, which all call this; false if the library fails.
bool on_all_ranks(Comm comm, bool mine);

// The text of MPI_Get_library_version, in one line.
std::string version_of(const Library& library);

}  // namespace coco::mpi
