#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests the coco command where no MPI is needed. usage: run_test.py COCO"""
import os
import re
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


class Tune(unittest.TestCase):
    def test_without_a_launcher(self):
        result = coco("tune")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stderr, "coco: error: tune: start it on the ranks to tune for, as a program: mpiexec -n RANKS coco tune\n")

    def test_wrong_words(self):
        for words, why in ((("--minutes", "few"), "--minutes"), (("--to", "2G"), "must be bytes from 1 to 1G"), (("--what",), "--what"),
                           (("--from", "0"), "must be bytes"), (("--collectives", ""), "unknown collective ''")):
            result = coco("tune", *words)
            self.assertEqual(result.returncode, 2, words)
            self.assertRegex(result.stderr, "^coco: error: .*\n$")
            self.assertIn(why, result.stderr)


class Info(unittest.TestCase):
    def test_explain(self):
        result = coco("info", "--explain", "bcast", "4", "1M")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stdout.splitlines()[0].split(":")[0], "bcast")
        self.assertIn("applies", result.stdout)

    def test_explain_sized(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write('[[rule]]\ncollective = "alltoallv"\nblock = "-4K"\nalgorithm = "naive"\n')
            file.flush()
            for block, choice in (("4K", "naive"), ("8K", "mpi")):
                result = coco("info", "--explain", "alltoallv", "4", block, COCO_POLICY=file.name)
                self.assertEqual(result.stdout.splitlines()[0], f"alltoallv: {choice}", result.stderr)

    def test_explain_domains(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write('[[rule]]\ncollective = "bcast"\nnodes = 2\ndomains = "3-"\nalgorithm = "leader"\n')
            file.flush()
            for words, choice in (((), "mpi"), (("--domains", "4"), "leader")):
                result = coco("info", "--explain", "bcast", "8", "8", "--nodes", "2", *words, COCO_POLICY=file.name)
                self.assertEqual(result.stdout.splitlines()[0], f"bcast: {choice}", result.stderr)
                self.assertIn("domains is 2" if choice == "mpi" else "applies", result.stdout)

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

    def test_in_brief(self):
        result = coco("info")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        headings = [line.split("  ")[0] for line in lines]
        self.assertEqual(headings, ["libcoco", "library", "MPI", "machine", "kernel", "heap", "learning", "policy", "settings", "switch off"])
        self.assertTrue(all(line[:12].endswith("  ") and line[12] != " " for line in lines), result.stdout)
        for words in ("policy      built-in, ", "settings    all have their defaults", "heap        adaptive, at most "):
            self.assertIn(words, result.stdout)

    def test_settings(self):
        told = coco("info", COCO_HEAP="shared", COCO_HEAP_LIMIT="64M", COCO_LEARN="read", XDG_CACHE_HOME="/tmp/nowhere").stdout
        self.assertIn("settings    COCO_LEARN=read, COCO_HEAP=shared, COCO_HEAP_LIMIT=64M (", told)
        self.assertRegex(told, "heap +shared, at most [67][0-9].* MiB for each rank")
        self.assertIn("learning    read only; 0 files of learned rules in /tmp/nowhere/coco\n", told)
        table = coco("info", "--settings", COCO_STATS="1").stdout
        self.assertRegex(table, "(?m)^COCO_STATS +1 +environment$")
        self.assertRegex(table, "(?m)^COCO_HEAP +adaptive +default$")
        self.assertIn("no shared memory for a rank", coco("info", COCO_HEAP_LIMIT="0").stdout)

    def test_rules(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as policy:
            policy.write('[[rule]]\ncollective = ["alltoall", "bcast"]\nblock = "2K-1M"\nranks = "8"\nalgorithm = "eager"\n'
                         'reason = "because"\n\n[[rule]]\ncollective = "allgather"\nalgorithm = "naive"\n')
            policy.flush()
            heading, *table = coco("info", "--rules", COCO_POLICY=policy.name, COCO_BCAST="mpi").stdout.splitlines()
        self.assertIn(policy.name, heading)
        self.assertEqual(table[0], "The environment forces bcast: mpi")
        columns = table[1].split()
        self.assertEqual(columns[:2] + columns[-1:], ["line", "collective", "reason"])
        at = {name: re.search(rf"\b{name}\b", table[1]).start() for name in columns}
        rows = [{name: row[at[name]:].split("  ")[0] for name in columns} for row in table[2:]]
        self.assertEqual([row["collective"] for row in rows], ["alltoall", "bcast", "allgather"])
        self.assertEqual({name: rows[0][name] for name in ("line", "ranks", "nodes", "block", "algorithm", "reason")},
                         {"line": "1", "ranks": "8", "nodes": "", "block": "2K-1M", "algorithm": "eager", "reason": "because"})
        self.assertEqual(rows[2]["line"], "8")
        built_in = coco("info", "--rules").stdout.splitlines()
        counted = int(re.search(r"built-in, (\d+) rules", coco("info").stdout)[1])
        self.assertEqual(len(built_in) - 2, counted)

    def test_algorithms(self):
        self.assertIn("numa_morton: ", coco("info", "--algorithms").stdout)


class CommandLine(unittest.TestCase):
    def test_help_hides_what_is_hidden(self):
        for words in ([], ["doctor"], ["info"]):
            text = coco(*words, "--help").stdout
            self.assertIn("Usage: coco", text)
            for hidden in ("describe", "carry", "preloaded"):
                self.assertNotIn(hidden, text)
        self.assertIn("program PROGRAM", coco("run", "--help").stdout)

    def test_help_brackets_what_may_be_left_out(self):
        self.assertIn("Usage: coco run [OPTIONS] program [arguments...]\n", coco("run", "--help").stdout)
        self.assertIn("Usage: coco report [OPTIONS] files...\n", coco("report", "--help").stdout)


if __name__ == "__main__":
    unittest.main()
