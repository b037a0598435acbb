#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests the coco command where no MPI is needed. usage: run_test.py COCO"""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

COCO = sys.argv.pop(1)
LAUNCHERS = ("PMI_", "PMIX_", "OMPI_", "HYDI_", "COCO_", "LD_PRELOAD")


def coco(*arguments, **extra):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)} | extra
    return subprocess.run([COCO, *arguments], env=environment, capture_output=True, text=True, timeout=30)


class Run(unittest.TestCase):
    def refused(self, status, words, *arguments, **extra):
        result = coco(*arguments, **extra)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertTrue(result.stderr.startswith("coco: error: "), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)
        self.assertIn(words, result.stderr)

    def build(self, text, *words):
        subprocess.run(["cc", "-x", "c", "-", "-x", "none", *words], input=text, text=True, check=True, timeout=60)

    def test_refusals(self):
        self.refused(2, "which program?", "run")
        self.refused(127, "no-such-program: not found", "run", "no-such-program")
        self.refused(126, "is not executable", "run", "/etc/passwd")
        self.refused(126, "is not a program", "run", "/tmp")
        self.refused(126, "setuid", "run", "/usr/bin/passwd")

    def test_static(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "static")
            self.build("int main(void) { return 0; }", "-static", "-o", program)
            self.refused(126, "static: nothing can be preloaded", "run", program)

    def test_file_capabilities(self):
        with tempfile.TemporaryDirectory() as folder:
            program = shutil.copy("/bin/true", folder)
            net_raw = struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0)  # revision 2, effective
            try:
                os.setxattr(program, "security.capability", net_raw)
            except OSError as why:
                self.skipTest(f"no file capabilities here: {why}")
            self.refused(126, "has file capabilities", "run", program)

    def test_preloads_the_one_library(self):
        result = coco("run", "python3", "-c", "import os; print(os.environ['LD_PRELOAD'])")
        self.assertEqual(result.stdout, os.path.join(os.path.dirname(os.path.realpath(COCO)), "libcoco.so") + "\n", result.stderr)

    def test_wrong_setting(self):
        wrong = {"COCO_BCAST": "x", "COCO_LOG": "loud", "COCO_HEAP_LIMIT": "12Q", "COCO_TOPOLOGY": "nodes=few",
                 "COCO_STATS": "perhaps", "COCO_TEST_DELAY": "soon", "COCO_DISABLE": "maybe", "COCO_POLICY": "/no/such"}
        for variable, value in wrong.items():
            with self.subTest(variable):
                words = f"coco: error: {variable}={value}: "
                self.refused(2, words, "info", **{variable: value})
                self.refused(2, words, "info", "--explain", "bcast", "2", "8", **{variable: value})
                self.refused(2, words, "run", "sh", "-c", "true", **{variable: value})

    def test_switched_off_checks_nothing(self):
        result = coco("run", "sh", "-c", "true", COCO_DISABLE="1", COCO_LOG="loud")
        self.assertNotIn("COCO_LOG", result.stderr)

    def test_arguments_are_the_programs_own(self):
        result = coco("run", "--", "sh", "-c", 'echo "$@"', "x", "--help", "--mpi")
        self.assertEqual(result.stdout, "--help --mpi\n", result.stderr)


class Info(unittest.TestCase):
    def test_explain(self):
        result = coco("info", "--explain", "bcast", "4", "1M")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stdout.splitlines()[0].split(":")[0], "bcast")
        self.assertIn("applies", result.stdout)

    def test_explain_neighbors(self):
        result = coco("info", "--explain", "neighbor_allgather", "16", "512", "--nodes", "4", "--degree", "3",
                      "--calls", "50")
        known, _, others = result.stdout.partition("In others:\n")
        self.assertEqual(result.returncode, 0)
        self.assertIn("neighbor_allgather: aggregate\n", known)
        self.assertIn("neighbor_allgather: eager\n", others)
        self.assertIn("other ranks may see another block", others)
        once = coco("info", "--explain", "neighbor_allgatherv", "16", "512", "--nodes", "4", "--calls", "1000")
        self.assertNotIn("In others:", once.stdout)
        self.assertEqual(coco("info", "--explain", "bcast", "4", "8", "--calls", "0").returncode, 2)

    def test_all(self):
        result = coco("info")
        self.assertEqual(result.returncode, 0, result.stderr)
        for word in ("libcoco ", "caches: ", "COCO_STATS: 0 (default)", "policy: built-in"):
            self.assertIn(word, result.stdout)
        self.assertIn("numa_morton: ", coco("info", "--algorithms").stdout)


if __name__ == "__main__":
    unittest.main()
