/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The C API of libcoco, for programs that want to ask. None of it is needed to use the library.
 * Thread safety: all functions may be called from any thread, before MPI_Init and after MPI_Finalize.
 */
#ifndef COCO_COCO_H
#define COCO_COCO_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version, "MAJOR.MINOR.PATCH". */
const char* coco_version(void);

/* Whether `address` lies on this rank's shared heap, where the other ranks of the node can reach it: 1 or 0.
 * Any address is allowed, NULL too. */
int coco_is_shared(const void* address);

#ifdef __cplusplus
}
#endif

#endif
