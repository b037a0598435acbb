# SPDX-License-Identifier: BSD-3-Clause
# find_package(coco): the target coco::coco. It goes before the MPI library:
#
#     target_link_libraries(app PRIVATE coco::coco MPI::MPI_C)
set(coco_PREFIX "${CMAKE_CURRENT_LIST_DIR}")
foreach(folder RANGE 1 @folders_to_cmake@)
  get_filename_component(coco_PREFIX "${coco_PREFIX}" DIRECTORY)
endforeach()

if(NOT TARGET coco::coco)
  add_library(coco::coco SHARED IMPORTED)
  # The run path: the library lies outside the loader's folders.
  set_target_properties(coco::coco PROPERTIES
    IMPORTED_LOCATION "${coco_PREFIX}/@libdir@/coco/libcoco.so.@so_version@"
    IMPORTED_SONAME "libcoco.so.@so_version@"
    INTERFACE_INCLUDE_DIRECTORIES "${coco_PREFIX}/@includedir@"
    INTERFACE_LINK_OPTIONS "LINKER:-rpath,${coco_PREFIX}/@libdir@/coco")
endif()
# To preload: the same file by the name that is no version's.
set(coco_LIBRARY "${coco_PREFIX}/@libdir@/coco/libcoco.so")
