// SPDX-License-Identifier: BSD-3-Clause
// Preloaded after the malloc door: a dlsym that allocates, grows, keeps and frees memory, as some tools' and
// older C libraries' do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef void* Dlsym(void* handle, const char* name);

void* dlsym(void* handle, const char* name) {
    static char* kept;
    static Dlsym* libcs;
    if (libcs == NULL) libcs = (Dlsym*)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (libcs == NULL) libcs = (Dlsym*)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    char* text = malloc(10);
    char* zeros = calloc(10, 10);
    for (int i = 0; i < 100; ++i)
        if (zeros[i] != 0) abort();
    strcpy(text, "some text");
    text = realloc(text, 200);
    if (strcmp(text, "some text") != 0) abort();
    free(zeros);
    free(kept);
    kept = text;  // freed or grown by the next call, when the decision may have fallen
    return libcs(handle, name);
}
