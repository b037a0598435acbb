# SPDX-License-Identifier: BSD-3-Clause
"""handles.py LIBRARY: python's ctypes asks the MPI library itself, by its handle, for MPI_Init and MPI_Alltoall: the
loader looks nowhere else, so that libcoco sees none of it and must do no harm."""
import ctypes
import os
import sys

mpi = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_LOCAL)


def handle(name, mpich):
    """MPICH's handles are numbers, Open MPI's the addresses of its objects."""
    try:
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))
    except ValueError:
        return ctypes.c_int(mpich)


WORLD, INT = handle("ompi_mpi_comm_world", 0x44000000), handle("ompi_mpi_int", 0x4C000405)
mpi.MPI_Init(None, None)
rank, size = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
mpi.MPI_Comm_size(WORLD, ctypes.byref(size))
wrong = 0
for call in range(20):
    send = (ctypes.c_int * size.value)(*(rank.value * 1000 + r * 10 + call for r in range(size.value)))
    recv = (ctypes.c_int * size.value)()
    mpi.MPI_Alltoall(send, 1, INT, recv, 1, INT, WORLD)
    wrong += list(recv) != [r * 1000 + rank.value * 10 + call for r in range(size.value)]
mpi.MPI_Finalize()
sys.exit(wrong != 0)
