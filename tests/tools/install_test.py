#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Installs this build (and the other MPI's, if it is built) into one temporary place, and uses it from there.

usage: install_test.py --build DIR --flavour F --prefix P --mpicc MPICC --mpi-run MPI_RUN --shim SHIM
                       --source LINKED.c --program PLAIN_MPI_PROGRAM
"""
import argparse
import os
import subprocess
import sys
import tempfile

LIMIT_S = 240  # of each command
OTHER = {"mpich": "openmpi", "openmpi": "mpich"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "flavour", "prefix", "mpicc", "mpi-run", "shim", "source", "program"):
        parser.add_argument("--" + name, required=True)
    return parser.parse_args()


def run(*command, **more):
    result = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, **more)
    if result.returncode != 0:
        sys.exit(f"FAILED: {' '.join(command)}\n{result.stdout}{result.stderr}")
    return result.stdout


def install(build, place):
    run("meson", "install", "-C", build, "--no-rebuild", "--destdir", place)


def find(place, name):
    return sorted(os.path.join(folder, name) for folder, _, files in os.walk(place) if name in files)


def expect(good, text):
    if not good:
        sys.exit("FAILED: " + text)


class Installed:
    def __init__(self, options, place):
        self.options, self.place = options, place
        self.prefix = place + options.prefix

    def check_files(self, flavours):
        libraries = [os.path.basename(os.path.dirname(file)) for file in find(self.prefix, "libcoco.so")]
        expect(libraries == sorted(flavours), f"libraries of {libraries} are installed, not of {flavours}")
        for name in ["coco", "coco.h", "coco.pc"] + [f"coco-{flavour}.pc" for flavour in flavours]:
            expect(len(find(self.prefix, name)) == 1, f"no {name} in {self.prefix}")

    def flags(self, package):
        folder = os.path.dirname(find(self.prefix, "coco.pc")[0])
        # The place was none that was configured.
        words = run("pkg-config", "--define-variable=prefix=" + self.prefix, "--cflags", "--libs", package,
                    env=dict(os.environ, PKG_CONFIG_PATH=folder))
        return words.split()

    def mpi_run(self, *command):
        run(self.options.mpi_run, "--flavour", self.options.flavour, "--shim", self.options.shim,
            "--ran", "alltoall=any", "--counted", "alltoall=20", "--", *command)

    def check_linked(self, package):
        program = os.path.join(self.place, "linked-" + package)
        run(self.options.mpicc, self.options.source, "-o", program, *self.flags(package))
        self.mpi_run(program)

    def check_command(self):
        self.mpi_run(os.path.join(self.prefix, "bin", "coco"), "run", self.options.program)


def main():
    options = arguments()
    os.environ.pop("LD_LIBRARY_PATH", None)
    os.environ.pop("DESTDIR", None)
    with tempfile.TemporaryDirectory(prefix="coco-install-") as place:
        installed = Installed(options, place)
        install(options.build, place)
        installed.check_files([options.flavour])
        installed.check_linked("coco")
        installed.check_command()
        other = os.path.join(options.build, "..", OTHER[options.flavour])
        if all(os.path.exists(os.path.join(other, file)) for file in ("libcoco.so", "tools/coco")):
            install(other, place)
            installed.check_files([options.flavour, OTHER[options.flavour]])
        installed.check_linked("coco-" + options.flavour)
        installed.check_command()
    return 0


if __name__ == "__main__":
    sys.exit(main())
