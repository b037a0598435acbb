/* SPDX-License-Identifier: BSD-3-Clause */
/* A plain MPI program that knows nothing of libcoco, dominated by MPI_Alltoall as distributed FFTs are: it
   transposes a square matrix of doubles, spread over the ranks by rows, again and again, scaling it a little
   between. Usage: transpose [ORDER [TIMES]]. Prints a checksum of the matrix (for comparison) and the time.
 */
#include <inttypes.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Transposes each of `blocks` square blocks of `n` from `from` to `to`; block b lies at column b * n of `to`.
 */
static void unpack(const double* from, double* to, int blocks, int n) {
    for (int b = 0; b < blocks; ++b)
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j)
                to[(size_t)j * (size_t)(blocks * n) + (size_t)(b * n + i)] =
                    from[((size_t)b * (size_t)n + (size_t)i) * (size_t)n + (size_t)j];
}

static void pack(const double* from, double* to, int blocks, int n, double scale) {
    for (int b = 0; b < blocks; ++b)
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j)
                to[((size_t)b * (size_t)n + (size_t)i) * (size_t)n + (size_t)j] =
                    scale * from[(size_t)i * (size_t)(blocks * n) + (size_t)(b * n + j)];
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int n = (argc > 1 ? atoi(argv[1]) : 256) / size, times = argc > 2 ? atoi(argv[2]) : 1000;
    int block = n * n;
    size_t doubles = (size_t)block * (size_t)size;
    double* rows = malloc(doubles * sizeof(double));
    double* packed = malloc(doubles * sizeof(double));
    double* arrived = malloc(doubles * sizeof(double));
    if (n < 1 || rows == NULL || packed == NULL || arrived == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < doubles; ++i) rows[i] = rank + 1.0 / (double)(i + 1);
    double in_calls = 0, begin = MPI_Wtime();
    for (int t = 0; t < times; ++t) {
        pack(rows, packed, size, n, t % 2 ? 1.0625 : 1 / 1.0625);
        double enter = MPI_Wtime();
        MPI_Alltoall(packed, block, MPI_DOUBLE, arrived, block, MPI_DOUBLE, MPI_COMM_WORLD);
        in_calls += MPI_Wtime() - enter;
        unpack(arrived, rows, size, n);
    }
    double seconds = MPI_Wtime() - begin;
    uint64_t sum = 0, total, bits;
    for (size_t i = 0; i < doubles; ++i) {
        memcpy(&bits, &rows[i], sizeof bits);
        sum = sum * 31 + bits;
    }
    sum ^= (uint64_t)rank << 56;
    MPI_Reduce(&sum, &total, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("checksum %016" PRIx64 "\n", total);
        printf("time in MPI_Alltoall %.3f s of %.3f s\n", in_calls, seconds);
    }
    free(rows);
    free(packed);
    free(arrived);
    MPI_Finalize();
    return 0;
}
