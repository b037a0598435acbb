#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a program that is no MPI program pays for libcoco in LD_PRELOAD: time of a start, and memory.

usage: start_cost.py [--starts N] [--program PROGRAM] LIBRARY...

A program is started N times without a preload, with an empty library, and with each LIBRARY, in turns that are shuffled.
Printed: medians of wall and processor time from the start to the end as seen by this process, and what each adds to a start
without a preload. Memory is that of a `cat` that waits for input: what the kernel says of it (smaps_rollup, VmSize).
"""
import argparse
import os
import random
import statistics
import subprocess
import tempfile
import time

MEMORY_FIELDS = ["Rss", "Pss", "Anonymous"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=2000)
    parser.add_argument("--program", default="/bin/true")
    parser.add_argument("libraries", nargs="+", metavar="LIBRARY")
    return parser.parse_args()


def empty_library(folder):
    file = os.path.join(folder, "empty.so")
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", file], check=True)
    return file


def environment(library):
    """That of a plain shell, with the library preloaded; none where it is empty."""
    words = {"PATH": os.environ["PATH"], "LANG": "C"}
    return {**words, "LD_PRELOAD": library} if library else words


def start_us(program, library):
    """Wall and processor time of a start, in microseconds."""
    words = environment(library)
    begin = time.perf_counter_ns()
    child = os.posix_spawn(program, [program], words)
    _, status, usage = os.wait4(child, 0)
    wall_us = (time.perf_counter_ns() - begin) / 1e3
    if status != 0:
        raise SystemExit(f"{program} with LD_PRELOAD={library}: status {status}")
    return wall_us, (usage.ru_utime + usage.ru_stime) * 1e6


def measure_times(program, libraries, starts):
    """Of each library the medians of wall and processor time."""
    samples = {library: [] for library in libraries}
    for turn in range(starts + starts // 10):
        for library in random.sample(libraries, len(libraries)):
            sample = start_us(program, library)
            if turn >= starts // 10:
                samples[library].append(sample)
    return {library: tuple(map(statistics.median, zip(*samples[library]))) for library in libraries}


def fields_kib(file, names):
    with open(file, encoding="ascii") as lines:
        words = [line.split() for line in lines]
    return {line[0][:-1]: int(line[1]) for line in words if line[0][:-1] in names}


def memory_kib(library):
    """What the kernel counts for a process that has started and waits."""
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(library)) as process:
        process.stdin.write(b"x")
        process.stdin.flush()
        process.stdout.read(1)  # it is past its start
        memory = fields_kib(f"/proc/{process.pid}/smaps_rollup", MEMORY_FIELDS)
        memory |= fields_kib(f"/proc/{process.pid}/status", ["VmSize"])
        process.stdin.close()
    return memory


def print_times(names, times):
    print(f"{'preload':<40} {'wall us':>9} {'more':>8} {'CPU us':>9} {'more':>8}")
    for library, (wall, cpu) in times.items():
        print(f"{names[library]:<40} {wall:9.0f} {wall - times[''][0]:+8.0f} {cpu:9.0f} {cpu - times[''][1]:+8.0f}")


def print_memory(names, memories):
    fields = [*MEMORY_FIELDS, "VmSize"]
    print(f"{'preload':<40}" + "".join(f" {field:>14}" for field in fields) + "   KiB, in brackets: more")
    for library, memory in memories.items():
        more = [f"{memory[field]} ({memory[field] - memories[''][field]:+})" for field in fields]
        print(f"{names[library]:<40}" + "".join(f" {text:>14}" for text in more))


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        empty = empty_library(folder)
        libraries = ["", empty] + [os.path.abspath(library) for library in options.libraries]
        names = {library: library for library in libraries} | {"": "none", empty: "an empty library"}
        print(f"# {options.starts} starts of {options.program} each, in turns: medians")
        print_times(names, measure_times(options.program, libraries, options.starts))
        print("# memory of a cat that waits")
        print_memory(names, {library: memory_kib(library) for library in libraries})


if __name__ == "__main__":
    main()
