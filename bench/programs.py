#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whole programs without and with libcoco, in turns: wall time with the launcher, as a user has it.

usage: programs.py [OPTION]... [PROGRAM]...

The programs are those of tests/programs/run_program, on Open MPI, and bench/apps' FFT and heat, on both MPI libraries. Printed: for each
number of ranks and setting of transparent_hugepage/enabled the median without libcoco in seconds, the speed with it (above 1:
faster), and the speed without it, but with huge pages of glibc's (GLIBC_TUNABLES=glibc.malloc.hugetlb=1); of hpcc its own rates, too.
"""
import argparse
import importlib.machinery
import importlib.util
import os
import statistics
import subprocess
import time

import huge_pages

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..")
HUGE_GLIBC = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
OURS = {"fft slab": ["fft", "--class", "A", "--split", "slab", "--by", "alltoall"],
        "fft pencil": ["fft", "--class", "A", "--split", "pencil", "--by", "alltoallv"],
        "fft subarrays": ["fft", "--class", "A", "--split", "slab", "--by", "alltoallw"],
        "fft static": ["fft", "--class", "A", "--split", "slab", "--by", "alltoall", "--arrays", "static"],
        "heat": ["heat3d", "96", "300"]}


def load_run_program():
    loader = importlib.machinery.SourceFileLoader("run_program", os.path.join(ROOT, "tests/programs/run_program"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_program", loader))
    loader.exec_module(module)
    return module


class App:
    """A program of bench/apps."""

    def __init__(self, name, mpi, given):
        self.title = f"{name}, {mpi}"
        self.words = [os.path.join(ROOT, "build", mpi, "bench/apps", OURS[name][0]), *OURS[name][1:]]
        self.mpi, self.given = mpi, given

    def run(self, ranks, ways):
        command = [os.path.join(ROOT, "tests/support/mpi_run"), "--mpi", self.mpi, "-n", str(ranks)]
        if self.mpi == "mpich":
            command += ["--shim", os.path.join(ROOT, "build/mpich/tests/support/yield_shim.so")]
        command += (["--preload", self.given.library] if "preload" in ways else []) + ["--"]
        started = time.monotonic()
        subprocess.run(command + (["env", HUGE_GLIBC] if "huge" in ways else []) + self.words, check=True, stdout=subprocess.DEVNULL)
        return {"wall": time.monotonic() - started}


class Package:
    """A program of a Debian package."""

    def __init__(self, name, programs, given):
        self.title, self.programs, self.given = name, programs, given
        self.program = programs.PROGRAMS[name]()
        if hasattr(self.program, "measure_whole"):
            self.program.measure_whole()

    def run(self, ranks, ways):
        options = argparse.Namespace(mpi_run=os.path.join(ROOT, "tests/support/mpi_run"), library=self.given.library, coco=None,
                                     ranks=ranks, ran=[])
        self.programs.run(options, self.program, "preload" in ways, [HUGE_GLIBC] if "huge" in ways else [])
        rates = {name: float(rate) for name, rate in getattr(self.program, "measured", {}).items()}
        return {"wall": self.program.wall_s, **rates}


def measure(program, ranks, given):
    """Returns: for each way and each thing measured the median."""
    ways = {"without": [], "with": ["preload"], "huge": ["huge"]}
    found = {way: [] for way in ways}
    for _ in range(given.times):
        for way, words in ways.items():
            found[way].append(program.run(ranks, words))
    return {way: {what: statistics.median(run[what] for run in runs) for what in runs[0]} for way, runs in found.items()}


def print_line(title, ranks, setting, found):
    for what, plain in found["without"].items():
        ours, huge = found["with"][what], found["huge"][what]
        speeds = (plain / ours, plain / huge) if what == "wall" else (ours / plain, huge / plain)
        label = title if what == "wall" else f"  {what}"
        print(f"{label:24}{ranks:6}  {setting:8}{plain:10.4g}{speeds[0]:8.3f}{speeds[1]:8.3f}", flush=True)


def main():
    programs = load_run_program()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--ranks", nargs="+", type=int, default=[2])
    parser.add_argument("--settings", nargs="+", metavar="WORD", choices=huge_pages.SETTINGS, help="to go through, as root")
    parser.add_argument("--library", default=os.path.join(ROOT, "build/libcoco.so"))
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="all of " + ", ".join([*programs.PROGRAMS, *OURS]))
    given = parser.parse_args()
    chosen = given.programs or [*OURS, *programs.PROGRAMS]
    print(f"{'program':24}{'ranks':>6}  {'enabled':8}{'without':>10}{'with':>8}{'huge':>8}")
    for setting in huge_pages.each(given.settings):
        for name in chosen:
            if name in OURS:
                runs = [App(name, mpi, given) for mpi in ("mpich", "openmpi")]
            else:
                runs = [Package(name, programs, given)]
            for program in runs:
                for ranks in given.ranks:
                    print_line(program.title, ranks, setting, measure(program, ranks, given))


if __name__ == "__main__":
    main()
