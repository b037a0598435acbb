#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Takes several outputs of scripts/bench together: the median over the runs of how fast each size was beside the MPI library.

usage: pool.py [--below RATIO] OUTPUT...    prints how many sizes are below RATIO (0.97) in each run and in the medians, and which.
"""
import argparse
import re
import statistics
import sys

SIZE = re.compile(r" +(\d+) +[\d.]+ +[\d.]+ +([\d.]+)$")
HOSTS = re.compile(r"\d+ hosts, \d+ ranks a host$")
HEAD = re.compile(r"(\w+, \d+ ranks)$")


def ratios_of(name):
    """{(MPI, collective and ranks, bytes): ratio} of an output."""
    ratios, library, mpi, head = {}, "", "", ""
    with open(name, encoding="utf-8") as file:
        for line in file:
            if line.startswith("== "):
                mpi = library = line[3:].strip()
            elif HOSTS.match(line):
                mpi = f"{library}, {line.strip()}"
            elif match := HEAD.match(line):
                head = match[1]
            elif match := SIZE.match(line):
                ratios[mpi, head, int(match[1])] = float(match[2])
    if not ratios:
        sys.exit(f"pool.py: {name}: no sizes of scripts/bench in it")
    return ratios


def main():
    parser = argparse.ArgumentParser(prog="pool.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--below", type=float, default=0.97, metavar="RATIO")
    parser.add_argument("outputs", nargs="+", metavar="OUTPUT")
    options = parser.parse_args()
    runs = []
    for name in options.outputs:
        runs.append(ratios_of(name))
        print(f"{name}: {sum(ratio < options.below for ratio in runs[-1].values())} of {len(runs[-1])} sizes below {options.below}")
    if any(run.keys() != runs[0].keys() for run in runs):
        sys.exit("pool.py: the outputs are not of the same sizes")
    medians = {size: statistics.median(run[size] for run in runs) for size in runs[0]}
    low = {size: ratio for size, ratio in medians.items() if ratio < options.below}
    print(f"medians of {len(runs)} runs: {len(low)} of {len(medians)} sizes below {options.below}")
    for (mpi, head, size), ratio in sorted(low.items(), key=lambda item: item[1]):
        print(f"  {ratio:.2f}  {mpi}, {head}, {size} B: " + " ".join(f"{run[mpi, head, size]:.2f}" for run in runs))


if __name__ == "__main__":
    main()
