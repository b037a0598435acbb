/* SPDX-License-Identifier: BSD-3-Clause */
/* What an extension module of Python is to MPI: a library linked with it, opened late and in a local scope.
 */
#include "../check.h"

__attribute__((visibility("default"))) int run_all(void);

int run_all(void) {
    MPI_Init(NULL, NULL);
    use_collectives();
    MPI_Finalize();
    return wrong;
}
