#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests `coco env`, and what it and `coco run` preload. usage: env_test.py COCO"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

COCO = os.path.realpath(sys.argv.pop(1))
LIBRARY = os.path.join(os.path.dirname(COCO), "libcoco.so")
CAN_MOUNT = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
LAUNCHERS = ("PMI", "OMPI_", "HYDI_", "COCO_", "LD_PRELOAD")
OTHER = next(line.split()[-1] for line in open("/proc/self/maps", encoding="utf-8") if "/libc.so" in line)  # any library
AWKWARD = "/tmp/it's $HOME \"x\" `y` \\z\n*.json"


def environment(**extra):
    return {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)} | extra


def coco(*arguments, command=COCO, **extra):
    return subprocess.run([command, *arguments], env=environment(**extra), capture_output=True, text=True, timeout=30)


class Env(unittest.TestCase):
    def printed(self, *arguments, **extra):
        result = coco("env", *arguments, **extra)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def refused(self, words, *arguments, **extra):
        result = coco(*arguments, **extra)
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, "(?m)^coco: error: ")  # the loader may speak before
        self.assertIn(words, result.stderr)

    def test_shell_gets_the_values_back(self):
        settings = {"COCO_DISABLE": "bcast,alltoallw", "COCO_STATS": AWKWARD, "COCO_TOPOLOGY": "nodes=2,domains=2"}
        lines = self.printed(LD_PRELOAD=OTHER, **settings)
        names = ["LD_PRELOAD", *settings]
        program = "import json, os, sys; print(json.dumps({n: os.environ[n] for n in sys.argv[1:]}))"
        result = subprocess.run(["sh", "-c", f'{lines}exec python3 -c "$@"', "sh", program, *names],
                                env=environment(COCO_LOG="error"), capture_output=True, text=True, timeout=30)
        self.assertEqual(json.loads(result.stdout), {"LD_PRELOAD": f"{LIBRARY}:{OTHER}", **settings})

    def test_nothing_set_is_the_preload_alone(self):
        self.assertEqual(self.printed(COCO_RANK_PROCESS="1:2", COCO_UNKNOWN="x"), f"export LD_PRELOAD={LIBRARY}\n")

    def test_slurm(self):
        # What has a comma goes by its name: --export separates by commas.
        line = self.printed("--slurm", COCO_DISABLE="bcast,alltoallw", COCO_STATS="1")
        self.assertEqual(line, f"--export=ALL,LD_PRELOAD={LIBRARY},COCO_DISABLE,COCO_STATS=1\n")
        self.refused("LD_PRELOAD=", "env", "--slurm", LD_PRELOAD="/a,b.so")

    def test_launchers(self):
        extra = {"COCO_DISABLE": "bcast,alltoallw", "COCO_STATS": "1"}
        self.assertEqual(self.printed("--mpich", **extra),
                         f"-genv LD_PRELOAD {LIBRARY} -genv COCO_DISABLE bcast,alltoallw -genv COCO_STATS 1\n")
        self.assertEqual(self.printed("--openmpi", **extra),
                         f"-x LD_PRELOAD={LIBRARY} -x COCO_DISABLE=bcast,alltoallw -x COCO_STATS=1\n")
        for option in ("--mpich", "--openmpi"):
            self.refused("COCO_STATS=/a b.json: a launcher's words cannot carry", "env", option, COCO_STATS="/a b.json")

    def test_json(self):
        found = json.loads(self.printed("--json", COCO_STATS=AWKWARD))
        self.assertEqual(found, {"LD_PRELOAD": LIBRARY, "COCO_STATS": AWKWARD})

    def test_wrong_use(self):
        self.refused("COCO_LOG=loud: must be", "env", COCO_LOG="loud")
        for words in (["--slurm", "--json"], ["word"]):
            result = coco("env", *words)
            self.assertEqual((result.returncode, result.stdout), (2, ""))


class Preload(unittest.TestCase):
    def test_one_libcoco(self):
        # Another version's, as a modulefile may have put there; names may be separated by blanks, too.
        before = f"/elsewhere/lib/coco/libcoco.so:{OTHER} libcoco.so.0"
        result = coco("env", "--json", LD_PRELOAD=before)
        self.assertEqual(json.loads(result.stdout)["LD_PRELOAD"], f"{LIBRARY}:{OTHER}")
        result = coco("run", "sh", "-c", 'echo "$LD_PRELOAD"', LD_PRELOAD=before)
        self.assertEqual(result.stdout, f"{LIBRARY}:{OTHER}\n", result.stderr)

    def test_folder_with_a_blank(self):
        with tempfile.TemporaryDirectory(prefix="co co") as folder:
            command = shutil.copy(COCO, folder)
            os.symlink(LIBRARY, os.path.join(folder, "libcoco.so"))
            for words in (["env"], ["run", "true"]):
                result = coco(*words, command=command)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn("a blank or a colon cannot be preloaded", result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)

    def test_no_library(self):
        with tempfile.TemporaryDirectory() as folder:
            result = coco("env", command=shutil.copy(COCO, folder))
            self.assertEqual(result.returncode, 2)
            self.assertIn("there is no libcoco.so beside this command", result.stderr)

    @unittest.skipUnless(CAN_MOUNT, "a mount namespace of its own needs root")
    def test_closed_proc(self):
        """What lies in the folder where the user happens to be is not taken for the library."""
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(LIBRARY, os.path.join(folder, "libcoco.so"))
            for words in (["env"], ["run", "true"]):
                result = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs /proc && exec "$@"', "sh", COCO, *words],
                                        cwd=folder, env=environment(), capture_output=True, text=True, timeout=60, check=False)
                self.assertNotEqual(result.returncode, 0)
                self.assertEqual(result.stdout, "")
                self.assertIn("cannot find out where it lies", result.stderr)


if __name__ == "__main__":
    unittest.main()
