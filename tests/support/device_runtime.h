/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests ask of the stand-in for CUDA's driver (device_runtime.c), beside its own functions. */
#ifndef DEVICE_RUNTIME_H
#define DEVICE_RUNTIME_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory of the device, which no processor can touch. The first makes a context. */
void* device_allocate(size_t bytes);
void device_free(void* memory);
/* Where the processor finds the bytes of an address of the device; NULL: the address is none of the device's. */
void* device_shadow(const void* address);
/* Whether the runtime says that there is no context. */
void device_hide_context(int hide);
/* From now on the runtime does not say whose an address is. */
void device_be_silent(void);

#ifdef __cplusplus
}
#endif
#endif
