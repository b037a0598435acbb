# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py: python opens MPI late and in a local scope, so that no symbol of it is in the global scope."""
import array
import os
import subprocess
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
wrong = 0
for call in range(20):
    send = array.array("i", [rank * 1000 + i // 64 * 10 + call for i in range(64 * size)])
    recv = array.array("i", [-1] * (64 * size))
    comm.Alltoall(send, recv)
    wrong += any(recv[i] != i // 64 * 1000 + rank * 10 + call for i in range(64 * size))
    comm.Allgather(send[:64], recv)
    wrong += any(recv[i] != i // 64 * 1000 + call for i in range(64 * size))
    comm.Bcast(send, root=call % size)
    wrong += send[0] != call % size * 1000 + call
    wrong += comm.allgather({"rank": rank, "call": call})[-1] != {"rank": size - 1, "call": call}
# Python forks and executes others.
wrong += subprocess.run(["true"], check=False).returncode
child = os.fork()
if child == 0:
    os._exit(0 if len(str(send)) > 64 else 1)
wrong += os.waitpid(child, 0)[1]
comm.Alltoall(send, recv)
if wrong:
    print(f"rank {rank}: {wrong} wrong results", file=sys.stderr)
sys.exit(wrong != 0)
