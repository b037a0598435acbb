// SPDX-License-Identifier: BSD-3-Clause
// A plugin: makes blocks that the program frees, and frees those of the program.
#include <stdlib.h>
#include <string.h>

void* plugin_make(size_t bytes) { return memset(malloc(bytes), 7, bytes); }
void plugin_free(void* block) { free(block); }
void* plugin_grow(void* block, size_t bytes) { return realloc(block, bytes); }
