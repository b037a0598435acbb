#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the first calls of a program take without and with libcoco: bench/first_calls, run in turns, each a job of its own.

usage: first_calls.py [OPTION]... [LIBRARY]...    libraries: build/libcoco.so by itself

Printed: for each way to call the first calls in sum, in microseconds of the slowest rank, medians of the jobs without libcoco; below, for
each library, its sums in parts of those. An exclamation mark: the sum is more than 1.05 times that without and 50 us more, or is more
at all from 12 calls on. At the end of the jobs of so many ranks: MPI_Init with a barrier behind
it in all of them, quartiles in microseconds of the slowest rank.
"""
import argparse
import itertools
import os
import statistics
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..")
sys.path.insert(1, os.path.join(ROOT, "scripts"))
import mpis  # noqa: E402

CALLS = [1, 2, 5, 12, 40, 100, 300]
PATIENT = 12  # from so many calls on a sum may not be larger than without


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", nargs="+", default=mpis.DEBIAN)
    parser.add_argument("--ranks", nargs="+", type=int, default=[2, 4, 8])
    parser.add_argument("--collective", nargs="+", default=["alltoall"])
    parser.add_argument("--bytes", nargs="+", type=int, default=[8, 512, 1024, 8192, 32768, 262144, 2097152])
    parser.add_argument("--comm", nargs="+", default=["world", "dup"], choices=["world", "dup"])
    parser.add_argument("--buffers", nargs="+", default=["fresh", "touched"], choices=["fresh", "touched"])
    parser.add_argument("--jobs", type=int, default=9, help="with each library, of each kind")
    parser.add_argument("libraries", nargs="*", default=["build/libcoco.so"], metavar="LIBRARY")
    return parser.parse_args()


def command(mpi, ranks, library, words):
    """What starts a job. MPICH's ranks that outnumber the CPUs get the shim that yields."""
    folder = os.path.join(ROOT, "build", mpi.name)
    preloads = [os.path.abspath(library)] if library else []
    if mpi.family == "mpich" and ranks > os.cpu_count():
        preloads.insert(0, os.path.join(folder, "tests/support/yield_shim.so"))
    within = ["env", "LD_PRELOAD=" + ":".join(preloads)] if preloads else []
    return [mpi.launcher, "-n", str(ranks), *within, os.path.join(folder, "bench/first_calls"), *words]


def run(mpi, ranks, library, words):
    """MPI_Init and the sums of a job, in microseconds."""
    environment = {**os.environ, **mpi.environment(), "XDG_CACHE_HOME": "/dev/null"}
    job = subprocess.run(command(mpi, ranks, library, words), env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    return [float(word) for word in job.stdout.split()]


def measure(mpi, ranks, libraries, words, jobs, inits):
    """The medians of the sums, by library. Each job's MPI_Init is added to inits."""
    sums = {library: [] for library in libraries}
    for job in range(jobs + 1):
        for library in libraries if job % 2 else libraries[::-1]:
            init, *sample = run(mpi, ranks, library, words)
            if job != 0:
                inits[library].append(init)
                sums[library].append(sample)
    return {library: [statistics.median(column) for column in zip(*sums[library])] for library in libraries}


def is_slower(calls, plain, ours):
    return ours > 1.05 * plain + 50 or (calls >= PATIENT and ours > plain)


def show(head, medians):
    plain = medians[""]
    print(f"{head:<44} " + " ".join(f"{us:9.1f}" for us in plain))
    for library, ours in medians.items():
        if library:
            parts = [f"{o / p:8.2f}" + ("!" if is_slower(calls, p, o) else " ") for calls, p, o in zip(CALLS, plain, ours)]
            print(f"  {library:<42} " + " ".join(parts), flush=True)


def show_inits(head, inits):
    for library, samples in inits.items():
        quartiles = statistics.quantiles(samples, n=4)
        print(f"{head}, MPI_Init of {len(samples)} jobs {'with ' + library if library else 'without'}: "
              + " ".join(f"{us:.0f}" for us in quartiles), flush=True)


def main():
    options = arguments()
    print(f"{'':<44} " + " ".join(f"{calls:9}" for calls in CALLS))
    libraries = ["", *options.libraries]
    for name, ranks in itertools.product(options.mpi, options.ranks):
        mpi = mpis.find(name)
        inits = {library: [] for library in libraries}
        for way in itertools.product(options.collective, options.comm, options.buffers, options.bytes):
            collective, comm, buffers, block_bytes = way
            words = [collective, "--bytes", str(block_bytes), "--calls", ",".join(map(str, CALLS))]
            words += ["--dup"] * (comm == "dup") + ["--touched"] * (buffers == "touched")
            medians = measure(mpi, ranks, libraries, words, options.jobs, inits)
            show(f"{name} {ranks}, {collective} {comm} {buffers} {block_bytes} B", medians)
        show_inits(f"{name} {ranks}", inits)


if __name__ == "__main__":
    main()
