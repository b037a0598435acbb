// SPDX-License-Identifier: BSD-3-Clause
//
// hwloc's functions, of a library that is opened when one is first needed. Few ranks need any (probe.h), and
// a libcoco that is linked with hwloc would bring it, and what it needs itself, into every program that has
// libcoco preloaded. Called by probe.cc alone, the only file that knows hwloc. hwloc's inline functions must
// not be used: they call what is not linked.
//
// Safety: any thread; not below malloc, not in signal handlers. Fails: no table where the library is not
// installed.
#pragma once
#include <hwloc.h>

namespace coco::os {

// One file name: that of all versions 2.x.
static_assert(HWLOC_API_VERSION >= 0x00020000 && HWLOC_API_VERSION < 0x00030000, "libcoco knows hwloc 2");
constexpr const char* kHwlocFile = "libhwloc.so.15";

struct HwlocCalls {
    decltype(&::hwloc_topology_init) topology_init;
    decltype(&::hwloc_topology_destroy) topology_destroy;
    decltype(&::hwloc_topology_load) topology_load;
    decltype(&::hwloc_topology_set_synthetic) set_synthetic;
    decltype(&::hwloc_get_type_depth) type_depth;
    decltype(&::hwloc_get_nbobjs_by_depth) objects_at_depth;
    decltype(&::hwloc_obj_type_is_normal) is_normal;
    decltype(&::hwloc_type_sscanf) type_of_word;
};

// Opened at the first call, then kept. Null if it cannot be opened.
const HwlocCalls* hwloc_calls();

}  // namespace coco::os
