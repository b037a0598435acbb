// SPDX-License-Identifier: BSD-3-Clause
//
// A collector that goes by what looks like a pointer (Boehm's) takes the data of all libraries for roots.
// libcoco's holds addresses of buffers that it has seen, but owns none of the program's memory: so it is left
// out, and nothing that the program has dropped is kept for it.
#include "os/symbols.h"

// The collector's own function, where the program is linked with one. Once it is told it keeps to that.
extern "C" __attribute__((weak)) void GC_exclude_static_roots(void* low, void* high);

namespace {

__attribute__((constructor)) void tell_collector() {
    if (&GC_exclude_static_roots == nullptr) return;
    const coco::os::Range data = coco::os::own_data();
    if (data.begin != data.end) GC_exclude_static_roots(data.begin, data.end);
}

}  // namespace
