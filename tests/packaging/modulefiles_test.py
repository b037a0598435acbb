#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Loads and unloads the installed modulefiles with the programs that read such files.

usage: modulefiles_test.py BUILD VERSION lmod|environment-modules FOLDER
FOLDER: where the tool's package was unpacked (scripts/bootstrap).
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
OTHER_VERSION = "99.0"
NAMES = ("LD_PRELOAD", "PATH", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH")


def command_of(tool, folder):
    """The words that make a shell's commands of a module command; nothing if the tool is not here."""
    interpreter, pattern = {"lmod": ("lua5.3", "share/lmod/lmod/libexec/lmod"), "environment-modules": ("tclsh", "lib/*/modulecmd.tcl")}[tool]
    found = glob.glob(f"{folder}/usr/{pattern}")
    return [interpreter, found[0]] if found and shutil.which(interpreter) else []


def two_libraries():
    """Some libraries that other preloads may be."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = {line.split()[-1] for line in maps if ".so" in line and "/ld-" not in line}
    return sorted(files)[:2]


class Modulefiles(unittest.TestCase):
    build = version = folder = None
    command = []
    only_tcl = False

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        place = os.path.join(cls.folder.name, "place")
        subprocess.run(["meson", "install", "-C", cls.build, "--no-rebuild", "--destdir", place], check=True, stdout=subprocess.DEVNULL)
        found = glob.glob(f"{place}/**/bin/coco", recursive=True)[0]
        cls.prefix = shutil.move(os.path.dirname(os.path.dirname(found)), os.path.join(cls.folder.name, "tree"))
        cls.other = shutil.copytree(cls.prefix, os.path.join(cls.folder.name, "other"), symlinks=True)
        files = cls.modulefiles(cls.other)
        for suffix in ("", ".lua"):
            os.rename(f"{files}/coco/{cls.version}{suffix}", f"{files}/coco/{OTHER_VERSION}{suffix}")
        if cls.only_tcl:
            for prefix in (cls.prefix, cls.other):
                for file in glob.glob(f"{cls.modulefiles(prefix)}/coco/*.lua"):
                    os.remove(file)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @staticmethod
    def modulefiles(prefix):
        return os.path.join(prefix, "share", "modulefiles")

    @staticmethod
    def library(prefix):
        return glob.glob(f"{prefix}/lib*/**/libcoco.so", recursive=True)[0]

    def shell(self, script, **extra):
        """What a shell prints in which `module` is defined and finds both trees; `show` prints the variables concerned."""
        words = " ".join(f"'{word}'" for word in self.command)
        show = " ".join(f'"{name}=${{{name}-unset}}"' for name in NAMES)
        text = f"""module() {{ eval "$({words} bash "$@")"; }}
                   show() {{ printf '%s\\n' {show}; }}
                   module use {self.modulefiles(self.prefix)} {self.modulefiles(self.other)}
                   {script}"""
        environment = {"PATH": "/usr/bin:/bin", "HOME": self.folder.name, "LMOD_PAGER": "none", **extra}
        return subprocess.run(["bash", "-c", text], env=environment, capture_output=True, text=True, timeout=120)

    def shown(self, script, **extra):
        result = self.shell(script, **extra)
        self.assertEqual(result.returncode, 0, result.stderr)
        return dict(line.split("=", 1) for line in result.stdout.splitlines()[-len(NAMES):])

    def test_load(self):
        here = self.shown(f"module load coco/{self.version}; show")
        self.assertEqual(here["LD_PRELOAD"], self.library(self.prefix))
        self.assertEqual(here["PATH"].split(":")[0], f"{self.prefix}/bin")
        self.assertEqual(here["CMAKE_PREFIX_PATH"], self.prefix)
        self.assertTrue(os.path.exists(f"{here['PKG_CONFIG_PATH']}/coco.pc"), here)

    def test_programs_have_it(self):
        result = self.shell(f"module load coco/{self.version}; coco --version; cat /proc/self/maps")
        self.assertIn(f"coco {self.version}\n", result.stdout, result.stderr)
        self.assertIn(os.path.realpath(self.library(self.prefix)), result.stdout)

    def test_unload_leaves_nothing(self):
        before = self.shown("show")
        self.assertEqual(self.shown(f"module load coco/{self.version}; module unload coco; show"), before)

    def test_other_preloads_stay(self):
        one, two = two_libraries()
        for before in (one, f"{one}:{two}", f"{one} {two}"):
            loaded = self.shown(f"module load coco/{self.version}; show", LD_PRELOAD=before)
            self.assertEqual(loaded["LD_PRELOAD"], f"{self.library(self.prefix)}:{before}")
            unloaded = self.shown(f"module load coco/{self.version}; module unload coco; show", LD_PRELOAD=before)
            self.assertEqual(unloaded["LD_PRELOAD"], before)
        later = self.shown(f'module load coco/{self.version}; export LD_PRELOAD="{one}:$LD_PRELOAD:{two}"; module unload coco; show')
        self.assertEqual(later["LD_PRELOAD"], f"{one}:{two}")

    def test_two_versions(self):
        """One takes the other's place, or is refused: never both."""
        self.assertEqual(self.shown(f"module load coco/{OTHER_VERSION}; show")["LD_PRELOAD"], self.library(self.other))
        both = self.shown(f"module load coco/{self.version}; module load coco/{OTHER_VERSION}; show")
        self.assertIn(both["LD_PRELOAD"], (self.library(self.prefix), self.library(self.other)))
        swapped = self.shown(f"module load coco/{self.version}; module swap coco/{self.version} coco/{OTHER_VERSION}; show")
        self.assertEqual(swapped["LD_PRELOAD"], self.library(self.other))

    def test_alone(self):
        """A modulefile that was copied out of its tree says so, and changes nothing."""
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(f"{self.modulefiles(self.prefix)}/coco", f"{folder}/alone")
            result = self.shell(f"module use {folder}; module load alone/{self.version}; show")
            told = " ".join((result.stdout + result.stderr).split())  # Lmod breaks lines
            self.assertIn("must lie in the tree that libcoco was installed to", told)
            self.assertIn("LD_PRELOAD=unset", result.stdout)


class TclModulefiles(Modulefiles):
    """With Lmod, which reads these too where there is no file of its own."""
    only_tcl = True


def main():
    Modulefiles.build, Modulefiles.version, tool = sys.argv[1:4]
    Modulefiles.command = command_of(tool, sys.argv[4])
    if not Modulefiles.command:
        print(f"{tool} is not here")
        return SKIPPED
    classes = [Modulefiles, TclModulefiles] if tool == "lmod" else [Modulefiles]
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(one) for one in classes)
    return 0 if unittest.TextTestRunner().run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
