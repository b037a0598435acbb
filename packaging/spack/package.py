# SPDX-License-Identifier: BSD-3-Clause
"""For Spack 1.0 and later. In a package repository of your own (`spack repo create`), as packages/libcoco/package.py; the source archive
of `meson dist` lies in the folder where spack is run:

    spack install --no-checksum libcoco

To run with it: `spack load libcoco`, then `coco run`. Loading it switches nothing on.
"""
import os

from spack_repo.builtin.build_systems.meson import MesonPackage

from spack.package import conflicts, depends_on, license, variant, version


class Libcoco(MesonPackage):
    """Makes the data-moving collectives of MPI programs fast, without recompiling them: one library for the MPICH family, Open MPI and
    the standard ABI of MPI 5, built without any of them."""

    url = f"file://{os.getcwd()}/libcoco-0.9.0.tar.xz"
    manual_download = True

    license("BSD-3-Clause")

    version("0.9.0")

    variant("report", default=False, description="What coco report needs")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("meson@1.0:", type="build")
    depends_on("cli11@2.1:", type="build")
    depends_on("nlohmann-json@3.9:", type="build")
    depends_on("tomlplusplus@3:", type="build")
    depends_on("valgrind~mpi~boost", type="build")  # a header
    depends_on("jemalloc@5.2: libs=static jemalloc_prefix=none", type="build")  # which becomes a part of libcoco
    depends_on("hwloc@2", type=("build", "link", "run"))
    depends_on("python@3.9:", type="run", when="+report")
    depends_on("py-matplotlib@3.5:", type="run", when="+report")
    depends_on("py-jinja2@3:", type="run", when="+report")

    conflicts("%gcc@:10", msg="libcoco is written in C++20")
    conflicts("platform=darwin")
    conflicts("platform=windows")

    def meson_args(self):
        # Warnings of compilers that are younger than libcoco are no errors.
        return ["-Dwerror=false"]
