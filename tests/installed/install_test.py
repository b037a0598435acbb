#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Installs a build into a temporary place, and uses it from there with one MPI.

usage: install_test.py --build DIR --mpi MPI --mpicc MPICC --mpi-run MPI_RUN --shim SHIM
                       --source LINKED.c --program PLAIN_MPI_PROGRAM
"""
import argparse
import os
import subprocess
import sys
import tempfile

LIMIT_S = 240  # of each command


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "mpi", "mpicc", "mpi-run", "shim", "source", "program"):
        parser.add_argument("--" + name, required=True)
    return parser.parse_args()


def run(*command, **more):
    result = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, **more)
    if result.returncode != 0:
        sys.exit(f"FAILED: {' '.join(command)}\n{result.stdout}{result.stderr}")
    return result.stdout


def install(build, place):
    run("meson", "install", "-C", build, "--no-rebuild", "--destdir", place)


def find(place, name, is_kind=os.path.exists):
    found = (os.path.join(folder, name) for folder, _, files in os.walk(place) if name in files)
    return sorted(file for file in found if is_kind(file))


def expect(good, text):
    if not good:
        sys.exit("FAILED: " + text)


class Installed:
    def __init__(self, options, place):
        self.options, self.place = options, place
        self.prefix = os.path.dirname(os.path.dirname(find(place, "coco", os.path.isfile)[0]))

    def check_files(self):
        for name in ("libcoco.so", "libcoco.so.0", "coco", "coco.h", "coco.pc"):
            expect(len(find(self.prefix, name, os.path.isfile)) == 1, f"not one {name} in {self.prefix}")
        library = find(self.prefix, "libcoco.so")[0]
        expect(os.path.islink(library) and os.readlink(library) == "libcoco.so.0", f"{library} is no link beside its file")

    def flags(self, package):
        folder = os.path.dirname(find(self.prefix, "coco.pc")[0])
        # The place was none that was configured.
        words = run("pkg-config", "--define-variable=prefix=" + self.prefix, "--cflags", "--libs", package,
                    env=dict(os.environ, PKG_CONFIG_PATH=folder))
        return words.split()

    def mpi_run(self, *command):
        run(self.options.mpi_run, "--mpi", self.options.mpi, "--shim", self.options.shim,
            "--ran", "alltoall=any", "--counted", "alltoall=20", "--", *command)

    def check_linked(self):
        program = os.path.join(self.place, "linked")
        run(self.options.mpicc, self.options.source, "-o", program, *self.flags("coco"))
        needed = run("readelf", "-d", program)
        expect("[libcoco.so.0]" in needed, f"a program that is linked with -lcoco asks for other than libcoco.so.0:\n{needed}")
        self.mpi_run(program)

    def check_command(self):
        self.mpi_run(os.path.join(self.prefix, "bin", "coco"), "run", self.options.program)


def main():
    options = arguments()
    os.environ.pop("LD_LIBRARY_PATH", None)
    os.environ.pop("DESTDIR", None)
    with tempfile.TemporaryDirectory(prefix="coco-install-") as place:
        install(options.build, place)
        installed = Installed(options, place)
        installed.check_files()
        installed.check_linked()
        installed.check_command()
    return 0


if __name__ == "__main__":
    sys.exit(main())
