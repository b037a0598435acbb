/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of an MPI library of no family, `linked` with it, or by a module that opens it in a `local` scope: each call
   must reach that library, and nothing else may happen. usage: strange linked|local MODULE */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const int mode = strcmp(argv[1], "local") == 0 ? RTLD_LOCAL : RTLD_GLOBAL;
    void* module = dlopen(argv[2], RTLD_NOW | mode);
    if (module == NULL) return fprintf(stderr, "%s\n", dlerror()), 2;
    int (*run)(void) = (int (*)(void))dlsym(module, "run");
    return run != NULL ? run() : 2;
}
