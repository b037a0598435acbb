# SPDX-License-Identifier: BSD-3-Clause
"""run.py MODULE: python opens a module that is linked with MPI, as importing mpi4py does; no symbol of MPI is in the
global scope. Its calls are ours all the same: the loader looks for them in preloaded libraries first."""
import ctypes
import os
import sys

module = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_LOCAL)
try:
    ctypes.CDLL(None).MPI_Get_count
    sys.exit("MPI is in the global scope: this tests nothing")
except AttributeError:
    sys.exit(module.run_all() != 0)
