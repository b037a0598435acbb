#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Installs a build into a temporary place, moves the tree, and uses it from there with one MPI; and two trees side by side.

usage: install_test.py --build DIR --version VERSION --so-version NUMBER --mpi MPI --family FAMILY --mpicc MPICC
                       --mpi-run MPI_RUN --shim SHIM --source LINKED.c --program PLAIN_MPI_PROGRAM
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

LIMIT_S = 240  # of each command


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "version", "so-version", "mpi", "family", "mpicc", "mpi-run", "shim", "source", "program"):
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
    """An installed tree, and how it is used."""

    def __init__(self, options, place, prefix):
        self.options, self.place, self.prefix = options, place, prefix

    def one(self, name):
        # The command's completion for bash has its name, too.
        found = [path for path in find(self.prefix, name, os.path.isfile) if "/bash-completion/" not in path]
        expect(len(found) == 1, f"not one {name} in {self.prefix}: {found}")
        return found[0]

    def check_files(self):
        so_file = f"libcoco.so.{self.options.so_version}"
        for name in ("libcoco.so", so_file, "coco", "coco.h", "coco.pc", "cocoConfig.cmake", "cocoConfigVersion.cmake",
                     self.options.version, f"{self.options.version}.lua"):
            self.one(name)
        for place in ("man/man1/coco.1", "man/man7/libcoco.7", "bash-completion/completions/coco", "zsh/site-functions/_coco",
                      "doc/libcoco/LICENSE", "doc/libcoco/THIRD-PARTY.txt"):
            path = os.path.join(self.prefix, "share", place)
            expect(os.path.isfile(path) and os.path.getsize(path) > 1000, f"there is no {path}")
        library = self.one("libcoco.so")
        expect(os.path.islink(library) and os.readlink(library) == so_file, f"{library} is no link beside its file")
        version = run(self.one("coco"), "--version").strip()
        expect(version == f"coco {self.options.version}", f"{version} is not the version of meson.build")

    def mpi_run(self, *command):
        run(self.options.mpi_run, "--mpi", self.options.mpi, "--shim", self.options.shim,
            "--ran", "alltoall=any", "--counted", "alltoall=20", "--", *command)

    def use_linked(self, program):
        """The program asks for this tree's library, by its so-version."""
        needed = run("readelf", "-d", program)
        so_name = f"libcoco.so.{self.options.so_version}"
        expect(f"[{so_name}]" in needed, f"a program that is linked with -lcoco asks for other than {so_name}:\n{needed}")
        found = re.search(rf"{so_name} => (\S+)", run("ldd", program))
        expect(found and os.path.samefile(found[1], self.one(so_name)), f"the loader does not find {so_name} for {program}")
        self.mpi_run(program)

    def check_pkg_config(self):
        folder = os.path.dirname(self.one("coco.pc"))
        asked = {"env": dict(os.environ, PKG_CONFIG_PATH=folder)}
        expect(run("pkg-config", "--modversion", "coco", **asked).strip() == self.options.version, "coco.pc has another version")
        flags = run("pkg-config", "--cflags", "--libs", "coco", **asked).split()
        program = os.path.join(self.place, "linked")
        run(self.options.mpicc, self.options.source, "-o", program, *flags)
        self.use_linked(program)

    def configure(self, folder, version):
        return subprocess.run(["cmake", "-S", os.path.dirname(os.path.realpath(__file__)), "-B", folder, f"-DWANTED_VERSION={version}",
                               f"-DSOURCE={self.options.source}", f"-DMPI_C_COMPILER={self.options.mpicc}",
                               f"-DCMAKE_PREFIX_PATH={self.prefix}"],
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)

    def check_cmake(self):
        folder = os.path.join(self.place, "cmake")
        configured = self.configure(folder, self.options.version)
        expect(configured.returncode == 0, f"cmake:\n{configured.stdout}{configured.stderr}")
        run("cmake", "--build", folder)
        self.use_linked(os.path.join(folder, "linked"))
        with open(os.path.join(folder, "preload.txt"), encoding="utf-8") as file:
            expect(os.path.samefile(file.read(), self.one("libcoco.so")), "coco_LIBRARY names another file")
        refused = self.configure(os.path.join(self.place, "cmake-newer"), "99.0")
        expect(refused.returncode != 0 and "coco" in refused.stderr, "cmake takes this version for 99.0")

    def check_command(self):
        self.mpi_run(self.one("coco"), "run", self.options.program)
        told = run(self.one("coco"), "env")
        expect(told == f"export LD_PRELOAD={os.path.realpath(os.path.dirname(self.one('libcoco.so')))}/libcoco.so\n", told)

    def check_report(self):
        measured = os.path.join(self.place, "measured.csv")
        with open(measured, "w", encoding="utf-8") as file:
            file.write("alltoall,2,8,0.100,0.400,4.000\n")
        run(self.one("coco"), "report", measured)
        expect(os.path.getsize(os.path.join(self.place, "measured.html")) > 0, "coco report made no page")

    def check_launcher(self):
        """The launcher hands on what `coco env` says, and is not preloaded itself."""
        words = run(self.one("coco"), "env", f"--{self.options.family}", env=dict(os.environ, COCO_ALLTOALL="eager")).split()
        # Without the shim, which would be preloaded instead.
        run(self.options.mpi_run, "--mpi", self.options.mpi, *(f"--launcher-argument={word}" for word in words),
            "--ran", "alltoall=eager", "--counted", "alltoall=20", "--", self.options.program)

    def check(self):
        self.check_files()
        self.check_pkg_config()
        self.check_cmake()
        self.check_command()
        self.check_report()
        self.check_launcher()


def moved(place):
    """The tree that was installed below the place, at another path than it was configured for."""
    configured = os.path.dirname(os.path.dirname(find(place, "coco", os.path.isfile)[0]))
    return shutil.move(configured, os.path.join(place, "elsewhere"))


def give_another_version(tree, version):
    """Makes a tree one of another version of the same length, in which nothing else differs."""
    other = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), version)
    for name in ("coco", "libcoco.so"):
        for path in find(tree, name, os.path.isfile):
            with open(os.path.realpath(path), "r+b") as file:
                content = file.read()
                file.seek(0)
                file.write(content.replace(version.encode(), other.encode()))
    return other


def check_side_by_side(options, place, prefix):
    """Of two versions, the command that is named runs its own library, also where the other one is preloaded already."""
    other = shutil.copytree(prefix, os.path.join(place, "other"), symlinks=True)
    version = give_another_version(other, options.version)
    first, second = Installed(options, place, prefix), Installed(options, place, other)
    show = ["sh", "-c", 'grep -o "/[^ ]*/libcoco.so[^ ]*" /proc/$$/maps | sort -u']
    expect(run(second.one("coco"), "--version").strip() == f"coco {version}", "the other tree is of the same version")
    for here, there in ((first, second), (second, first)):
        mapped = run(here.one("coco"), "run", *show, env=dict(os.environ, LD_PRELOAD=there.one("libcoco.so")))
        expect(mapped.strip() == os.path.realpath(here.one("libcoco.so")), f"mapped: {mapped}")
        said = subprocess.run([here.one("coco"), "doctor"], env=dict(os.environ, LD_PRELOAD=there.one("libcoco.so")), capture_output=True,
                              text=True, timeout=LIMIT_S, check=False).stdout
        told = version if there is second else options.version
        expect(f"of version {told}" in said, f"the doctor does not name the other version, {told}:\n{said}")


def main():
    options = arguments()
    os.environ.pop("LD_LIBRARY_PATH", None)
    os.environ.pop("DESTDIR", None)
    with tempfile.TemporaryDirectory(prefix="coco-install-") as place:
        install(options.build, place)
        prefix = moved(place)
        Installed(options, place, prefix).check()
        check_side_by_side(options, place, prefix)
    return 0


if __name__ == "__main__":
    sys.exit(main())
