#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The MPI libraries that tests and benchmarks run on: how each is compiled for and launched.

An MPI is named `mpich` or `openmpi`, which are Debian's, or by the prefix that it was installed to; `PREFIX:standard`
is that MPI by the standard ABI (its mpicc_abi). `arm64-mpich` and `arm64-openmpi` are Debian's of another processor
(arm64.py).

usage: mpis.py MPI        prints what Meson wants to know, a line each: NAME, a tab, VALUE (lists: with semicolons)
"""
import collections
import os
import re
import shutil
import sys

# What only some need is imported where it is needed: each run of a test comes here.

DEBIAN = ["mpich", "openmpi"]
STANDARD = ":standard"
ARM64 = "arm64-"
DEFAULT_FOLDERS = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]


class NoMpi(Exception):
    """There is no such MPI here; the text says why."""


class Mpi(collections.namedtuple("Mpi", "name family abi debian mpicc mpifort launcher library fortran_library compile_words "
                                        "link_words emulator")):
    """One MPI library.

    family: whose ways it has, `mpich` or `openmpi`; abi: by which programs are compiled; mpifort: "" if there is none; library: the
    file that C programs need; fortran_library: that of Fortran's names, "" if there is none; emulator: the words that run its
    programs, none on this machine itself.
    """

    @property
    def is_prrte(self):
        """Whether it is launched by PRRTE: Open MPI since 5.0."""
        return self.family == "openmpi" and not self.debian and \
            os.path.exists(os.path.join(os.path.dirname(self.launcher), "prterun"))

    def environment(self):
        """What its launcher needs in order to run as root, with more ranks than cores, and to start at once."""
        if self.family == "mpich":
            return {}
        # Without it the PSM libraries look for a device for 0.2 s at each start; tests need none.
        words = {"OMPI_MCA_mtl": "^psm,psm2,ofi", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                 "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
        if self.is_prrte:
            words |= {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                      "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
                      "PRTE_MCA_hwloc_default_binding_policy": "none"}
        return words


def words_of(*command):
    import shlex
    import subprocess
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoMpi(f"{' '.join(command)}: {done.stderr.strip()}")
    return shlex.split(done.stdout)


def shown_words(wrapper, family):
    """What a compiler wrapper would run; nothing if it refuses."""
    try:
        return words_of(wrapper, "-show" if family == "mpich" else "--showme")[1:]
    except NoMpi:
        return []


def split_words(words):
    """A wrapper's words: those for compiling, and those for linking."""
    compile_words = [word.replace("-I", "-isystem", 1) if word.startswith("-I") else word
                     for word in words if word.startswith(("-I", "-D", "-pthread"))]
    return compile_words, [word for word in words if word.startswith(("-L", "-l", "-Wl,", "-pthread"))]


def tool(folder, *names):
    """The first of these programs that is there; a folder of "" is PATH."""
    for name in names:
        found = shutil.which(os.path.join(folder, name) if folder else name)
        if found:
            return found
    return ""


def library_in(words, pattern):
    """The file of the first library among linker words whose name matches; "" if there is none."""
    folders = [word[2:] for word in words if word.startswith("-L")] + DEFAULT_FOLDERS
    for name in (word[2:] for word in words if word.startswith("-l") and re.fullmatch(pattern, word[2:])):
        for folder in folders:
            file = os.path.join(folder, f"lib{name}.so")
            if os.path.exists(file):
                return os.path.realpath(file)
    return ""


def find_arm64(name, to_compile):
    """The same release of Debian's MPI for the other processor, started by this machine's launcher."""
    import arm64
    here = find(name, to_compile)
    if not to_compile:
        return here._replace(name=ARM64 + name, emulator=arm64.EMULATOR)
    native = words_of("gcc", "-print-multiarch")[0]
    compile_words, link_words = (arm64.translated(words, native) for words in (here.compile_words, here.link_words))
    link_words += [f"-Wl,-rpath-link,{arm64.SYSTEM}{folder}/{arm64.TRIPLET}" for folder in ("/lib", "/usr/lib")]
    return here._replace(name=ARM64 + name, mpifort="", fortran_library="", compile_words=compile_words,
                         link_words=link_words, library=library_in(link_words, r"mpi(ch)?"), emulator=arm64.EMULATOR)


def find(name, to_compile=True):
    """The MPI of that name. Without `to_compile` it does not ask the compiler wrappers, which takes as long as a short job, and
    leaves out what they know. Raises NoMpi."""
    if name.startswith(ARM64):
        return find_arm64(name[len(ARM64):], to_compile)
    prefix, is_standard = (name[:-len(STANDARD)], True) if name.endswith(STANDARD) else (name, False)
    debian = prefix in DEBIAN
    folder, suffix = ("", "." + prefix) if debian else (os.path.join(os.path.abspath(prefix), "bin"), "")
    mpicc = tool(folder, ("mpicc_abi" if is_standard else "mpicc") + suffix)
    launcher = tool(folder, "mpiexec" + suffix) if prefix != "openmpi" else tool(folder, "mpirun.openmpi")
    if not mpicc or not launcher:
        raise NoMpi(f"{name}: there is no {'mpicc' if not mpicc else 'mpiexec'} in {folder or 'PATH'}")
    family = prefix if debian else "openmpi" if tool(folder, "ompi_info") else "mpich"
    compile_words, link_words = split_words(shown_words(mpicc, family)) if to_compile else ([], [])
    mpifort = "" if is_standard or not to_compile else tool(folder, "mpifort" + suffix)  # there is none of the standard ABI yet
    fortran_words = split_words(shown_words(mpifort, family))[1] if mpifort else []
    short = prefix if debian else os.path.abspath(prefix).strip("/").replace("/", "-")
    fortran_library = library_in(fortran_words, r"mpi(ch)?fort|mpi_mpifh")
    if not fortran_library:
        mpifort = ""  # a wrapper that says that Fortran was left out
    return Mpi(name=short + ("-standard" if is_standard else ""), family=family, abi="standard" if is_standard else family,
               debian=debian, mpicc=mpicc, mpifort=mpifort, launcher=launcher, library=library_in(link_words, r"mpi(ch|_abi)?"),
               fortran_library=fortran_library, compile_words=compile_words, link_words=link_words, emulator=[])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        mpi = find(sys.argv[1])
    except NoMpi as why:
        sys.exit(f"mpis: {why}")
    for name, value in mpi._asdict().items():
        print(name, ";".join(value) if isinstance(value, list) else value, sep="\t")


if __name__ == "__main__":
    main()
