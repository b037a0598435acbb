// SPDX-License-Identifier: BSD-3-Clause
#include "os/hwloc_calls.h"

#include <dlfcn.h>

namespace coco::os {
namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

bool find_all(void* library, HwlocCalls& calls) {
    return find(library, "hwloc_topology_init", calls.topology_init) &&
           find(library, "hwloc_topology_destroy", calls.topology_destroy) &&
           find(library, "hwloc_topology_load", calls.topology_load) &&
           find(library, "hwloc_topology_set_synthetic", calls.set_synthetic) &&
           find(library, "hwloc_get_type_depth", calls.type_depth) &&
           find(library, "hwloc_get_nbobjs_by_depth", calls.objects_at_depth) &&
           find(library, "hwloc_obj_type_is_normal", calls.is_normal) &&
           find(library, "hwloc_type_sscanf", calls.type_of_word);
}

}  // namespace

const HwlocCalls* hwloc_calls() {
    static HwlocCalls calls;
    static const bool found = [] {
        void* library = dlopen(kHwlocFile, RTLD_NOW | RTLD_LOCAL);
        return library != nullptr && find_all(library, calls);
    }();
    return found ? &calls : nullptr;
}

}  // namespace coco::os
