#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes RPM packages from packaging/rpm/libcoco.spec, installs them below a folder and removes them.

usage: rpm_test.py BUILD VERSION

Debian has rpmbuild, but neither Fedora's packages that the spec needs (--nodeps) nor its macros for Meson: these take here what BUILD
holds. So all of the spec is read, and all but its compiling is carried out.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))
SPEC = os.path.join(ROOT, "packaging/rpm/libcoco.spec")
SKIPPED = 77
# What rpmlint says that does not hold here, each with why.
ALLOWED = {
    "no-url-tag": "the project has no address",
    "no-changelogname-tag": "CHANGELOG.md",
    "no-packager-tag": "who publishes packages is it",
    "no-signature": "likewise",
    "no-group-tag": "Fedora has none any more",
    "invalid-license": "Debian's rpmlint knows none of the present names",
    "requires-on-release": "both packages are of one build",
    "rpath-in-buildconfig": "the library lies outside the loader's folders",
    "outside-libdir-files": "modulefiles belong to the machine's own architecture",
    "no-binary": "of the devel package: its files name the folder of libraries",
    "devel-file-in-non-devel-package": "libcoco.so is what programs are preloaded with",
    "manpage-not-compressed": "Debian's rpmbuild leaves that to the distribution",
    "no-manual-page-for-binary": "it looks for a compressed one",
    "only-non-binary-in-usr-lib": "likewise",
    "unstripped-binary-or-object": "BUILD is no package's build",
}


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"FAILED: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(good, text):
    if not good:
        sys.exit(f"FAILED: {text}")


def installed_tree(build, place):
    """What Meson would install to /usr. Returns: its folder, and the folder of libraries in it."""
    run("meson", "install", "-C", build, "--no-rebuild", "--destdir", f"{place}/destination")
    command = glob.glob(f"{place}/destination/**/bin/coco", recursive=True)[0]
    tree = os.path.dirname(os.path.dirname(command))
    library = glob.glob(f"{tree}/lib*/**/libcoco.so", recursive=True)[0]
    return tree, os.path.relpath(os.path.dirname(os.path.dirname(library)), tree)


def source_archive(version, folder):
    os.makedirs(folder)
    files = run(os.path.join(ROOT, "scripts/list_sources"))
    run("tar", "-C", ROOT, "--null", "--ignore-failed-read", "--transform", f"s,^,libcoco-{version}/,", "-cJf",
        f"{folder}/libcoco-{version}.tar.xz", "-T", "-", input=files)


def make(version, tree, libdir, top):
    source_archive(version, f"{top}/SOURCES")
    macros = {"_topdir": top, "_libdir": f"/usr/{libdir}", "debug_package": "%{nil}", "meson": "true", "meson_build": "true",
              "meson_install": f"mkdir -p %{{buildroot}} && cp -a {tree} %{{buildroot}}/usr"}
    words = [word for name, value in macros.items() for word in ("--define", f"{name} {value}")]
    run("rpmbuild", "-bb", "--nodeps", "--without", "bundled_jemalloc", *words, SPEC)
    return sorted(glob.glob(f"{top}/RPMS/*/*.rpm"))


def files_in(folder):
    return {os.path.relpath(os.path.join(here, name), folder) for here, _, names in os.walk(folder) for name in names}


def check_lint(packages):
    done = subprocess.run(["rpmlint", *packages], capture_output=True, text=True, timeout=240, check=False)
    lines = [line for line in done.stdout.splitlines() if ": E: " in line or ": W: " in line]
    faults = [line for line in lines if line.split(": ")[2].split()[0] not in ALLOWED]
    expect(not faults, "rpmlint:\n" + "\n".join(faults))


def check_use(packages, tree, version, root):
    os.makedirs(root)
    rpm = ["rpm", "--root", root, "--nodeps"]
    run("rpm", "--root", root, "--initdb")
    before = files_in(root)
    run(*rpm, "--install", *packages)
    present = {file.removesuffix(".gz") for file in files_in(root)}  # man pages
    licences = {file for file in files_in(tree) if file.startswith("share/doc/libcoco/")}
    expect({os.path.basename(file) for file in licences} == {"LICENSE", "THIRD-PARTY.txt"}, f"the licences of the tree: {licences}")
    for name in map(os.path.basename, licences):
        expect(any(re.fullmatch(rf"usr/share/licenses/libcoco[^/]*/{name}", file) for file in present), f"no {name} in the packages")
    missing = {f"usr/{file}" for file in files_in(tree) - licences} - present
    expect(not missing, f"not in the packages: {missing}")
    expect(run(f"{root}/usr/bin/coco", "--version") == f"coco {version}\n", "another version's command")
    expect("export LD_PRELOAD=" in run(f"{root}/usr/bin/coco", "env"), "coco env does not find the library")
    run(*rpm, "--erase", "libcoco", "libcoco-devel")
    left = {file for file in files_in(root) - before if "/lib/rpm/" not in f"/{file}"}
    expect(not left, f"left after the packages were removed: {left}")


def main():
    build, version = sys.argv[1:]
    if not shutil.which("rpmbuild") or not shutil.which("rpmlint"):
        print("rpmbuild or rpmlint is not here")
        return SKIPPED
    with tempfile.TemporaryDirectory() as place:
        tree, libdir = installed_tree(build, place)
        packages = make(version, tree, libdir, f"{place}/top")
        expect(len(packages) == 2, f"not two packages: {packages}")
        check_lint(packages)
        check_use(packages, tree, version, f"{place}/root")
    return 0


if __name__ == "__main__":
    sys.exit(main())
