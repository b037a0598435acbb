// SPDX-License-Identifier: BSD-3-Clause
//
// The check of the programs with allocators of their own: a wrong answer ends the job.
#pragma once
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            _Exit(3);                                                               \
        }                                                                           \
    } while (0)
