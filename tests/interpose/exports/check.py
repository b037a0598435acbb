#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares what a shared library exports with the list of names that it is to export.

usage: check.py LIBRARY LIST     LIST has a name a line, and comments behind #. Exit status 1 if they differ.

A name too many may take the place of a program's own; one too few is a door that is not there.
"""
import subprocess
import sys


def exported(library):
    """The dynamic symbols that the library defines, whatever they are."""
    lines = subprocess.run(["nm", "--dynamic", "--defined-only", "--format=posix", library], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    return {line.split()[0] for line in lines}


def listed(path):
    with open(path, encoding="utf-8") as file:
        return {word for line in file for word in line.partition("#")[0].split()}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    found, wanted = exported(sys.argv[1]), listed(sys.argv[2])
    for name in sorted(found - wanted):
        print(f"exported, but not listed: {name}")
    for name in sorted(wanted - found):
        print(f"listed, but not exported: {name}")
    print(f"{len(found)} names")
    return 0 if found == wanted else 1


if __name__ == "__main__":
    sys.exit(main())
