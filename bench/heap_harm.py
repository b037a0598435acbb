#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What libcoco's heap costs a program that knows nothing of it: bench/heap_harm without and with the preload, in turns.

usage: heap_harm.py [--turns N] [--settings WORD...] -- HEAP_HARM LIBRARY

--settings sets transparent_hugepage/enabled, as root, and puts it back at the end. Printed: for each setting the best time
without libcoco over the best with it; more than 1 is faster with it.
"""
import argparse
import os
import subprocess

import huge_pages


def best_times(program, library, best):
    environment = dict(os.environ, PMI_RANK="0", LD_PRELOAD=library) if library else os.environ
    lines = subprocess.run([program, "3"], env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    for line in lines:
        name, time = line[:28].strip(), float(line[28:].split()[0])
        best[name] = min(time, best.get(name, time))


def speeds(program, library, turns):
    plain, ours = {}, {}
    for _ in range(turns):
        best_times(program, None, plain)
        best_times(program, library, ours)
    return {name: time / ours[name] for name, time in plain.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--settings", nargs="+", metavar="WORD", choices=huge_pages.SETTINGS)
    parser.add_argument("program", metavar="HEAP_HARM")
    parser.add_argument("library", metavar="LIBRARY")
    given = parser.parse_args()
    columns = {word: speeds(given.program, given.library, given.turns) for word in huge_pages.each(given.settings)}
    print(f"{'':30}" + "".join(f"{word:>9}" for word in columns))
    for name in next(iter(columns.values())):
        print(f"{name:30}" + "".join(f"{column[name]:9.2f}" for column in columns.values()))


if __name__ == "__main__":
    main()
