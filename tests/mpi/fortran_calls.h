// SPDX-License-Identifier: BSD-3-Clause
//
// Calls of call.h as Fortran programs make them: by names with an underscore, all by reference, with
// Fortran's handles.
#pragma once
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "call.h"

namespace test {

// The MPI's library of Fortran names. Requires: open() was called before others are.
class FortranLibrary {
  public:
    // Makes verify() able to call by Fortran's names. Returns: false: there is no such library.
    static bool open(const char* file) {
        handle_ = dlopen(file, RTLD_NOW);
        if (handle_ != nullptr) invoke_fortran = invoke;
        return handle_ != nullptr;
    }

  private:
    using Int = MPI_Fint;
    using Plain = void(const void*, Int*, Int*, void*, Int*, Int*, Int*, Int*);
    using Gatherv = void(const void*, Int*, Int*, void*, Int*, Int*, Int*, Int*, Int*);
    using Sized = void(const void*, Int*, Int*, Int*, void*, Int*, Int*, Int*, Int*, Int*);
    using Addressed = void(const void*, Int*, MPI_Aint*, Int*, void*, Int*, MPI_Aint*, Int*, Int*, Int*);
    using Bcast = void(void*, Int*, Int*, Int*, Int*, Int*);

    // A side as Fortran has it.
    struct Arrays {
        explicit Arrays(const Side& side)
            : counts(side.counts.begin(), side.counts.end()),
              displacements(side.displacements.begin(), side.displacements.end()),
              addresses(side.displacements.begin(), side.displacements.end()) {
            for (MPI_Datatype type : side.types) types.push_back(MPI_Type_c2f(type));
        }
        std::vector<Int> counts, displacements, types;
        std::vector<MPI_Aint> addresses;
    };

    template <class Function>
    static Function* find(const Call& c) {
        const std::string name =
            std::string("mpi_") + (c.neighbor ? "neighbor_" : "") + name_of(c.kind) + "_";
        void* found = dlsym(handle_, name.c_str());
        if (found == nullptr) {
            std::fprintf(stderr, "no %s: %s\n", name.c_str(), dlerror());
            std::abort();
        }
        return reinterpret_cast<Function*>(found);
    }

    static int invoke(const Call& c, const void* from, void* to) {
        Arrays s(c.send), r(c.recv);
        Int comm = MPI_Comm_c2f(c.comm), root = c.root, code = MPI_ERR_OTHER;
        switch (c.kind) {
            case Kind::alltoall:
            case Kind::allgather:
                find<Plain>(c)(from, s.counts.data(), s.types.data(), to, r.counts.data(), r.types.data(),
                               &comm, &code);
                break;
            case Kind::allgatherv:
                find<Gatherv>(c)(from, s.counts.data(), s.types.data(), to, r.counts.data(),
                                 r.displacements.data(), r.types.data(), &comm, &code);
                break;
            case Kind::alltoallw:
                if (c.neighbor) {
                    find<Addressed>(c)(from, s.counts.data(), s.addresses.data(), s.types.data(), to,
                                       r.counts.data(), r.addresses.data(), r.types.data(), &comm, &code);
                    break;
                }
                [[fallthrough]];
            case Kind::alltoallv:
                find<Sized>(c)(from, s.counts.data(), s.displacements.data(), s.types.data(), to,
                               r.counts.data(), r.displacements.data(), r.types.data(), &comm, &code);
                break;
            case Kind::bcast:
                find<Bcast>(c)(to, r.counts.data(), r.types.data(), &root, &comm, &code);
                break;
        }
        return code;
    }

    static inline void* handle_ = nullptr;
};

}  // namespace test
