// SPDX-License-Identifier: BSD-3-Clause
//
// Which loaded object defines a name, in the order in which the dynamic linker searches. Read from the
// objects' symbol tables, because addresses do not tell: a program without position-independent code shows an
// entry of its own jump table as the address of a library's function. Called by heap, at a process's first
// allocation, and by mpi, when it looks for MPI libraries. Works below malloc and before libc's constructors.
// Thread safety: any thread. Fails: an object without a hash table defines nothing.
#pragma once
#include <link.h>

#include <cstddef>

namespace coco::os {

using Object = const void*;  // a loaded object; null: none

// Calls `act` with loaded objects, in the order of that search, until it says true. Returns: whether it did.
template <typename Act>
bool any_object(Act act) {
    auto call = [](dl_phdr_info* object, std::size_t, void* to) -> int {
        return static_cast<int>((*static_cast<Act*>(to))(*object));
    };
    return dl_iterate_phdr(call, &act) != 0;
}

// The object that this is linked into.
Object own_object();
// Its writable data, in whole words; empty if it cannot be found.
struct Range {
    void* begin;
    void* end;
};
Range own_data();
// The first object that defines `name`; with `after`, the first of those that are searched after that object.
Object definer(const char* name, Object after = nullptr);
// The address of a function that the kernel itself has put into this process (its vDSO); null: there is none.
const void* kernels_own(const char* name);
// The file that a loaded object came from; "" for the program itself, null for an object that is gone.
const char* file_of(Object object);

}  // namespace coco::os
