#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What learning ends with, and what it costs: bench/loop by default, by the rules alone and without libcoco, in turns, each a job of
its own that knows nothing of earlier ones.

usage: grid.py [OPTION]...

Printed for each cell: the medians of the last quarter of the loop in microseconds a call, by the rules and without libcoco and by further
candidates; the default's last quarter, and its whole loop, as parts of the speed of the best of these (1: as fast). An exclamation mark:
below 0.97.
"""
import argparse
import itertools
import math
import os
import statistics
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..")
sys.path.insert(1, os.path.join(ROOT, "scripts"))
import mpis  # noqa: E402

ENOUGH = 0.97


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", nargs="+", default=mpis.DEBIAN)
    parser.add_argument("--ranks", nargs="+", type=int, default=[2, 4, 8])
    parser.add_argument("--collective", nargs="+", default=["alltoall", "alltoallv", "allgather", "bcast"])
    parser.add_argument("--bytes", nargs="+", type=int, default=[8, 512, 1024, 8192, 65536, 1048576])
    parser.add_argument("--computing", nargs="+", type=float, default=[0], metavar="US", help="before each call")
    parser.add_argument("--also", nargs="+", default=[], metavar="ALGORITHM", help="further candidates")
    parser.add_argument("--calls", type=int, default=20000, help="of a loop, at most")
    parser.add_argument("--seconds", type=float, default=1, help="a loop may take, about")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--library", default=os.path.join(ROOT, "build/libcoco.so"))
    parser.add_argument("--cluster", metavar="WORDS", help="for scripts/cluster run")
    parser.add_argument("--policy", help="a file: by its rules instead of the built-in ones")
    return parser.parse_args()


def run(given, cell, candidate, calls):
    """Returns the microseconds of a call in the whole loop and in its last quarter."""
    mpi, ranks, collective, size, computing = cell
    command = [os.path.join(ROOT, "tests/support/mpi_run"), "--mpi", mpi, "-n", str(ranks)]
    command += ["--shim", os.path.join(ROOT, "build", mpi, "tests/support/yield_shim.so")]
    if given.cluster:
        command += ["--cluster", given.cluster]
    if candidate != "mpi":
        command += ["--preload", given.library]
        if given.policy:
            command += ["--env", f"COCO_POLICY={given.policy}"]
    if candidate not in ("mpi", "default"):
        command += ["--env", "COCO_LEARN=off"]
    if candidate not in ("mpi", "default", "rules"):
        command += ["--env", f"COCO_{collective.upper()}={candidate}"]
    command += ["--", os.path.join(ROOT, "build", mpi, "bench/loop"), collective, str(size), str(calls), str(computing)]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(words[0]), float(words[1])


def measure(given, cell):
    candidates = ["mpi", "rules", *given.also]
    trial = max(run(given, cell, "mpi", 200)[0] + cell[4], 0.1)
    calls = int(min(given.calls, max(400, given.seconds * 1e6 / trial)))
    times = {name: [] for name in [*candidates, "default"]}
    for _ in range(given.turns):
        for name in times:
            times[name].append(run(given, cell, name, calls))
    whole = {name: statistics.median(t[0] for t in all_times) for name, all_times in times.items()}
    end = {name: statistics.median(t[1] for t in all_times) for name, all_times in times.items()}
    best_end, best_whole = (min(figure[name] for name in candidates) for figure in (end, whole))
    return calls, end, best_end / end["default"], best_whole / whole["default"]


def main():
    given = arguments()
    parts = []
    print("  ".join(["MPI", "ranks", "collective", "bytes", "computing us", "calls", "us a call", "default: end, whole"]))
    for cell in itertools.product(given.mpi, given.ranks, given.collective, given.bytes, given.computing):
        calls, end, end_part, whole_part = measure(given, cell)
        parts.append((end_part, whole_part))
        figures = ", ".join(f"{name} {us:.3g}" for name, us in end.items() if name != "default")
        mark = " !" if min(end_part, whole_part) < ENOUGH else ""
        print(f"{cell[0]:8} {cell[1]} {cell[2]:9} {cell[3]:8} {cell[4]:g} {calls:6}  {figures:40}  {end_part:.2f} {whole_part:.2f}{mark}",
              flush=True)
    for number, what in enumerate(["end", "whole"]):
        means = math.exp(statistics.mean(math.log(part[number]) for part in parts))
        below = sum(part[number] < ENOUGH for part in parts)
        print(f"{what}: geometric mean {means:.3f}, {below} of {len(parts)} below {ENOUGH}")


if __name__ == "__main__":
    main()
