/* SPDX-License-Identifier: BSD-3-Clause */
/* Two modules, each opened in a scope of its own and each with an MPI library of its own, run one after the other.
   usage: local MODULE MODULE */
#include <dlfcn.h>
#include <stdio.h>

static int run(const char* path) {
    void* module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
    int (*run_of_module)(void) = (int (*)(void))dlsym(module, "run");
    return run_of_module();
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const int first = run(argv[1]), second = run(argv[2]);
    printf("first %d, second %d\n", first, second);
    return first != 0 || second != 0;
}
