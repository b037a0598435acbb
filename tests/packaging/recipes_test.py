#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares what CITATION.cff, and the packages and recipes of packaging/, say with what Meson knows: versions, so-version, options, what
is needed.

usage: recipes_test.py BUILD VERSION SO_VERSION     BUILD: a build folder of the library

Neither Spack nor EasyBuild is a package of Debian's: their files are read as the Python that they are.
"""
import ast
import datetime
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

BUILD, VERSION, SO_VERSION = sys.argv[1:4]
del sys.argv[1:]
ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))
EASYCONFIG = glob.glob(f"{ROOT}/packaging/easybuild/*.eb")[0]
FILES = {"deb": "packaging/debian/control", "rpm": "packaging/rpm/libcoco.spec", "Spack": "packaging/spack/package.py",
         "EasyBuild": os.path.relpath(EASYCONFIG, ROOT)}
# What libcoco is built with, by its name for Meson (or of its header), and for each kind of package.
NEEDED = {
    "hwloc": {"deb": "libhwloc-dev", "rpm": "pkgconfig(hwloc)", "Spack": "hwloc", "EasyBuild": "hwloc"},
    "jemalloc": {"deb": "libjemalloc-dev", "rpm": "pkgconfig(jemalloc)", "Spack": "jemalloc", "EasyBuild": "jemalloc"},
    "tomlplusplus": {"deb": "libtomlplusplus-dev", "rpm": "tomlplusplus-devel", "Spack": "tomlplusplus", "EasyBuild": "tomlplusplus"},
    "nlohmann_json": {"deb": "nlohmann-json3-dev", "rpm": "json-devel", "Spack": "nlohmann-json", "EasyBuild": "nlohmann_json"},
    "cli11": {"deb": "libcli11-dev", "rpm": "cli11-devel", "Spack": "cli11", "EasyBuild": "CLI11"},
    "valgrind": {"deb": "valgrind", "rpm": "valgrind-devel", "Spack": "valgrind", "EasyBuild": "valgrind"},
}
CITATION_FIELDS = {"cff-version", "message", "type", "title", "abstract", "authors", "version", "date-released", "license", "keywords"}
OF_THE_SYSTEM_OR_TESTS = {"threads", "catch2", "catch2-with-main", "hdf5", "simgrid"}


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def citation():
    return yaml.safe_load(text_of("CITATION.cff"))


def introspect(what):
    done = subprocess.run(["meson", "introspect", what, BUILD], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


def easyconfig():
    """The values that the file sets."""
    names = {"SOURCE_TAR_XZ": "%(name)s-%(version)s.tar.xz", "SHLIB_EXT": "so"}
    exec(compile(text_of(FILES["EasyBuild"]), EASYCONFIG, "exec"), names)
    return names


def spack_calls():
    """(name, first argument) of each directive in the class of the recipe."""
    tree = ast.parse(text_of(FILES["Spack"]))
    body = next(node for node in tree.body if isinstance(node, ast.ClassDef)).body
    calls = [node.value for node in body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    return [(call.func.id, ast.literal_eval(call.args[0])) for call in calls]


class Recipes(unittest.TestCase):
    def test_versions(self):
        found = {
            "spec": re.search(r"^Version:\s+(\S+)", text_of(FILES["rpm"]), re.M)[1],
            "EasyBuild": easyconfig()["version"],
            "name of the EasyBuild file": re.match(r"libcoco-(.*)-GCCcore-", os.path.basename(EASYCONFIG))[1],
            "Spack": next(what for call, what in spack_calls() if call == "version"),
            "archive for Spack": re.search(r"libcoco-([\d.]+)\.tar", text_of(FILES["Spack"]))[1],
            "CITATION.cff": citation()["version"],
            "CHANGELOG.md": re.search(r"^## (\S+)", text_of("CHANGELOG.md"), re.M)[1],
            "Meson": introspect("--projectinfo")["version"],
        }
        self.assertEqual(found, {where: VERSION for where in found})

    def test_date_of_a_release(self):
        """What is not released yet has none."""
        told = re.search(r"^## \S+ \((.*)\)$", text_of("CHANGELOG.md"), re.M)[1]
        released = citation().get("date-released", "unreleased")
        self.assertEqual(str(released), told)
        if told != "unreleased":
            self.assertIsInstance(released, datetime.date)

    def test_citation(self):
        """By the rules of the Citation File Format 1.2.0, as far as they concern what stands there."""
        said = citation()
        self.assertEqual(said["cff-version"], "1.2.0")
        self.assertEqual(said["type"], "software")
        for field in ("message", "title", "abstract", "version", "license"):
            self.assertIsInstance(said[field], str, field)
            self.assertTrue(said[field].strip(), field)
        self.assertEqual(set(said) - CITATION_FIELDS, set())
        self.assertEqual(said["license"], re.search(r"^License:\s+(\S+)", text_of(FILES["rpm"]), re.M)[1])
        self.assertTrue(said["authors"])
        for author in said["authors"]:
            self.assertTrue({"name", "family-names"} & set(author), author)
            self.assertEqual({type(value) for value in author.values()}, {str})
        self.assertEqual(len(set(said["keywords"])), len(said["keywords"]))
        self.assertEqual({type(word) for word in said["keywords"]}, {str})

    def test_so_version(self):
        control = text_of(FILES["deb"])
        self.assertEqual(re.findall(r"^Package: (libcoco\d+)$", control, re.M), [f"libcoco{SO_VERSION}"])
        self.assertTrue(os.path.exists(f"{ROOT}/packaging/debian/libcoco{SO_VERSION}.install"))
        self.assertEqual(set(re.findall(r"libcoco\d+", control)), {f"libcoco{SO_VERSION}"})

    def test_all_that_meson_needs_is_named(self):
        known = {dependency["name"] for dependency in introspect("--dependencies")} - OF_THE_SYSTEM_OR_TESTS
        self.assertEqual(known - set(NEEDED), set(), "Meson needs more than NEEDED and the recipes say")
        for name, packages in NEEDED.items():
            for kind, package in packages.items():
                self.assertRegex(text_of(FILES[kind]), rf"(?<![\w-]){re.escape(package)}(?![\w-])", f"{name}: {kind}")

    def test_deb_needs_what_bootstrap_installs(self):
        needs = re.search(r"^Build-Depends: ((?:.|\n )*)", text_of(FILES["deb"]), re.M)[1]
        named = {need.split()[0] for need in needs.split(",")} - {"debhelper-compat"}
        listed = re.search(r'^build_packages="([^"]*)"', text_of("scripts/bootstrap"), re.M)[1]
        self.assertEqual(named, set(listed.split()))

    def test_oldest_meson(self):
        oldest = re.search(r"meson_version: '>=([\d.]+)'", text_of("meson.build"))[1]
        self.assertIn(f"meson (>= {oldest})", text_of(FILES["deb"]))
        self.assertIn(f"meson >= {oldest}", text_of(FILES["rpm"]))
        self.assertTrue(oldest.startswith(re.search(r"meson@([\d.]+):", text_of(FILES["Spack"]))[1]))

    def test_options_are_mesons(self):
        known = {option["name"] for option in introspect("--buildoptions")}
        for path in [*FILES.values(), "packaging/debian/rules"]:
            for option in re.findall(r"-D([a-z_.]+)=", text_of(path)):
                self.assertIn(option, known, path)

    def test_easybuild_looks_for_installed_files(self):
        with tempfile.TemporaryDirectory() as place:
            subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", place], check=True, stdout=subprocess.DEVNULL)
            prefix = os.path.dirname(os.path.dirname(glob.glob(f"{place}/**/bin/coco", recursive=True)[0]))
            libdir = next(option["value"] for option in introspect("--buildoptions") if option["name"] == "libdir")
            paths = easyconfig()["sanity_check_paths"]
            for path in paths["files"] + paths["dirs"]:
                self.assertTrue(os.path.exists(os.path.join(prefix, re.sub("^lib/", f"{libdir}/", path))), path)


if __name__ == "__main__":
    unittest.main()
