#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program that is no MPI rank gets from a preloaded libcoco nothing but the library itself: no shared heap, no allocator that
is ready, no other library but those of every C++ program.

usage: bystander.py LIBCOCO
"""
import os
import re
import subprocess
import sys

LIBRARY = os.path.realpath(sys.argv[1])
LAUNCHERS = ("PMI", "OMPI_", "MPI_", "PALS_", "HYDI_", "COCO_", "LD_PRELOAD")
ALLOWED = r"ld-linux.*|libc|libm|libgcc_s"
LARGE_BYTES = 1 << 20  # what no program of this kind maps for itself
MORE_KIB = 512         # of memory written to: the library's relocated tables and variables


def lines_of_waiting_cat(preload):
    """The lines of maps and of smaps_rollup of a `cat` that has started and waits."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    environment |= {"LD_PRELOAD": preload} if preload else {}
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        process.stdin.write(b"x")
        process.stdin.flush()
        process.stdout.read(1)
        files = []
        for name in ("maps", "smaps_rollup"):
            with open(f"/proc/{process.pid}/{name}", encoding="utf-8") as file:
                files.append(file.read().splitlines())
        process.stdin.close()
    return files


def anonymous_kib(rollup):
    return int(next(line.split()[1] for line in rollup if line.startswith("Anonymous:")))


def mapped_files(maps):
    return {os.path.realpath(words[5]) for words in map(str.split, maps) if len(words) > 5 and words[5].startswith("/")}


def large_nameless(maps):
    """Mappings of no file that are large; not those that follow a file's, which are a library's variables."""
    found, before_end, before_has_name = [], "", False
    for words in map(str.split, maps):
        begin, end = words[0].split("-")
        has_name = len(words) > 5 or (before_has_name and begin == before_end)
        if not has_name and int(end, 16) - int(begin, 16) >= LARGE_BYTES:
            found.append(" ".join(words))
        before_end, before_has_name = end, has_name
    return found


def main():
    plain_maps, plain_rollup = lines_of_waiting_cat("")
    maps, rollup = lines_of_waiting_cat(LIBRARY)
    more = mapped_files(maps) - mapped_files(plain_maps) - {LIBRARY}
    faults = [f"mapped, too: {file}" for file in more if not re.fullmatch(rf"({ALLOWED})\.so.*", os.path.basename(file))]
    if LIBRARY not in mapped_files(maps):
        faults.append(f"{LIBRARY} was not preloaded")
    faults += [f"mapped, too: {line}" for line in set(large_nameless(maps)) - set(large_nameless(plain_maps))]
    more_kib = anonymous_kib(rollup) - anonymous_kib(plain_rollup)
    if more_kib > MORE_KIB:
        faults.append(f"{more_kib} KiB more are written to")
    print("\n".join(faults) or f"well: {more_kib} KiB more are written to")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
