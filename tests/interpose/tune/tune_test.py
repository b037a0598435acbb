#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests coco tune on an MPI library: its files, its words, and what is left when it is interrupted.

usage: tune_test.py COCO SCHEMA CLASS WORDS...      CLASS: Machine or Cluster; WORDS: of mpi_run, which runs the jobs
"""
import concurrent.futures
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(1, os.path.join(HERE, "../../../scripts"))
import mpis  # noqa: E402

MPI_RUN = os.path.join(HERE, "../../support/mpi_run")
COCO, SCHEMA, CLASS, *WORDS = sys.argv[1:]
SKIPPED = 77
# As short as can be where nothing depends on how far it gets.
SHORT = 0.05


def environment(**extra):
    return {k: v for k, v in os.environ.items() if not k.startswith("COCO_")} | extra


def info(*words, **extra):
    """What coco info prints."""
    done = subprocess.run([COCO, "info", *words], env=environment(COCO_LEARN="off", **extra), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="coco-tune-")
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder], check=True)
        self.policy, self.report = (os.path.join(self.folder, f"tuned.{end}") for end in ("toml", "json"))

    def tune(self, *words, ranks=2, run=(), output=None, minutes=SHORT):
        """A job that must end well. Returns: what it printed."""
        command = [MPI_RUN, *WORDS, "-n", str(ranks), *run, "--", COCO, "tune", "--minutes", str(minutes), "-o", output or self.policy, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode == SKIPPED:
            self.skipTest(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def checked_report(self, path=None):
        with open(path or self.report, encoding="utf-8") as file:
            report = json.load(file)
        try:
            import jsonschema
        except ImportError:
            return report
        with open(SCHEMA, encoding="utf-8") as file:
            schema = json.load(file)
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema).validate(report)
        return report

    def check_rules(self, report, *words):
        """The rules choose, for each cell, what the report says, and the file is one that libcoco takes."""
        self.assertRegex(info(COCO_POLICY=self.policy), rf"(?m)^policy +{self.policy}, \d+ rules")
        for cell in report["cells"]:
            degree = ["--degree", str(cell["degree"])] if cell["degree"] is not None else []
            crowded = ["--crowded"] if report["crowded"] else []
            said = info("--explain", cell["collective"], str(report["ranks"]), str(cell["block_bytes"]), "--nodes",
                        str(report["nodes"]), "--domains", str(report["domains"]), "--calls", "1000", *crowded, *degree,
                        *words, COCO_POLICY=self.policy)
            lines = [line for line in said.splitlines() if line.startswith(cell["collective"] + ":")]
            self.assertEqual(lines[0], f"{cell['collective']}: {cell['chosen']}", said)
            self.assertIn(f"{self.policy}:", said)


class Machine(InFolder):
    def test_files(self):
        printed = self.tune("--collectives", "bcast,alltoall,alltoallv", "--from", "64", "--to", "2K", minutes=3 * SHORT)
        self.assertIn("times as fast as mpi", printed)
        self.assertIn(f"COCO_POLICY={self.policy}", printed)
        report = self.checked_report()
        self.assertTrue(report["is_complete"])
        self.assertEqual((report["nodes"], report["ranks_per_node"], report["ranks"]), (1, 2, 2))
        sizes = [64, 128, 256, 512, 1024, 2048]
        self.assertEqual([(c["collective"], c["block_bytes"], c["buffers"]) for c in report["cells"]],
                         [(name, size, buffers) for name in ("alltoall", "alltoallv", "bcast") for size in sizes
                          for buffers in ("warm", "cold")])
        names = {candidate["name"] for cell in report["cells"] for candidate in cell["candidates"]}
        self.assertLessEqual({"mpi", "naive", "morton", "eager", "direct", "segmented"}, names)
        for cell in report["cells"]:
            self.assertIn("mpi", [candidate["name"] for candidate in cell["candidates"]])
        self.check_rules(report)
        # All other communicators keep the built-in rules.
        self.assertEqual(info("--explain", "alltoall", "16", "64", COCO_POLICY=self.policy).partition("\n")[0],
                         info("--explain", "alltoall", "16", "64").partition("\n")[0])
        self.assertEqual(sorted(os.listdir(self.folder)), ["tuned.json", "tuned.toml"])

    def test_goes_on_from_a_policy(self):
        self.tune("--collectives", "allgather", "--to", "8")
        second = os.path.join(self.folder, "second.toml")
        self.tune("--collectives", "bcast", "--to", "8", run=["--env", f"COCO_POLICY={self.policy}"], output=second)
        with open(second, encoding="utf-8") as file:
            text = file.read()
        self.assertLess(text.index('"bcast"'), text.index('"allgather"'))
        self.assertIn('otherwise = "built-in"', text)
        crowded = ["--crowded"] if "crowded    = true" in text else []
        said = info("--explain", "allgather", "2", "8", *crowded, COCO_POLICY=second)
        self.assertIn("tuned", said.splitlines()[-1])

    def test_nodes_and_neighbors(self):
        self.tune("--collectives", "alltoall,alltoallw,neighbor_allgather,neighbor_alltoallv", "--to", "16", ranks=4,
                  run=["--env", "COCO_TOPOLOGY=nodes=2"])
        report = self.checked_report()
        self.assertEqual((report["nodes"], report["ranks_per_node"], report["domains"]), (2, 2, 2))
        self.assertIn("as nodes=2", report["machine"])
        names = {candidate["name"] for cell in report["cells"] for candidate in cell["candidates"]}
        self.assertLessEqual({"mpi", "leader", "bruck", "multileader", "sloav", "aggregate", "combining"}, names)
        self.assertEqual({cell["degree"] is not None for cell in report["cells"] if "neighbor" in cell["collective"]}, {True})
        self.check_rules(report)

    def refused(self, regex, *words, ranks=2, run=()):
        command = [MPI_RUN, *WORDS, "-n", str(ranks), "--fails", f"^coco: error: tune: .*{regex}", "--lines", "1", *run, "--", COCO,
                   "tune", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_refusals(self):
        """Side by side: the launchers wait most of the time."""
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            refused = functools.partial(pool.submit, self.refused)
            jobs = [
                refused("--collectives: unknown collective 'reduce': must be a list of alltoall, ", "--collectives", "bcast,reduce"),
                refused("--from 2K is larger than --to 1K", "--from", "2K", "--to", "1K"),
                refused("--minutes", "--minutes", "0"),
                refused("-o out.txt: must be a file name that ends in .toml", "-o", "out.txt"),
                refused("/dev/null/x.toml: cannot be written: Not a directory", "-o", "/dev/null/x.toml"),
                refused("--mpi libc.so.6: .*no MPI library that libcoco serves", "--mpi", "libc.so.6"),
                refused("--mpi /var: there is no MPI library", "--mpi", "/var"),
                refused("one rank alone", ranks=1),
                refused("COCO_DISABLE=1 switches libcoco off", run=["--env", "COCO_DISABLE=1"]),
                refused("the environment decides about bcast", run=["--env", "COCO_BCAST=eager"]),
                refused("COCO_POLICY=nothing.toml: cannot be read", run=["--env", "COCO_POLICY=nothing.toml"]),
            ]
            for job in jobs:
                job.result()
        self.assertEqual(os.listdir(self.folder), [])

    def test_unknown_option(self):
        done = subprocess.run([MPI_RUN, *WORDS, "-n", "2", "--fails", "^coco: error: .*--colectives", "--lines", "1", "--", COCO,
                               "tune", "--colectives", "bcast"], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def start_long(self):
        """A job with files of its first cells, and so many cells left that a signal comes in time however late it is. Its sizes
        end where nothing can be said of larger ones. Returns: the launcher's process."""
        mpi = mpis.find(WORDS[WORDS.index("--mpi") + 1], to_compile=False)
        shim = ["env", f"LD_PRELOAD={WORDS[WORDS.index('--shim') + 1]}"] if mpi.family == "mpich" else []
        command = [mpi.launcher, "-n", "2", *shim, *mpi.emulator, COCO, "tune", "--minutes", "10", "--to", "128K",
                   "--collectives", "alltoall,alltoallv,allgather,allgatherv,bcast", "-o", self.policy]
        job = subprocess.Popen(command, env=environment(**mpi.environment()), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.addCleanup(self.end, job)
        deadline = time.monotonic() + 120
        while not os.path.exists(self.report) and time.monotonic() < deadline and job.poll() is None:
            time.sleep(0.05)
        self.assertTrue(os.path.exists(self.report), "no cell was finished")
        return job

    @staticmethod
    def end(job):
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
        job.stdout.close()
        job.wait()

    def check_incomplete(self):
        report = self.checked_report()
        self.assertFalse(report["is_complete"])
        self.assertGreater(len(report["cells"]), 0)
        with open(self.policy, encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?m)^# Incomplete: \d+ of \d+ cells were measured\.$")
        self.check_rules(report)
        # Beyond what was measured the built-in rules hold.
        self.assertIn("built-in:", info("--explain", "alltoall", "2", "1M", COCO_POLICY=self.policy))

    def test_rank_is_asked_to_end(self):
        job = self.start_long()
        ranks = [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and self.is_rank(entry)]
        self.assertEqual(len(ranks), 2)
        os.kill(ranks[-1], signal.SIGTERM)
        printed, _ = job.communicate(timeout=120)
        self.assertEqual(job.returncode, 0, printed)
        self.assertRegex(printed, r"coco tune: interrupted with \d+ of 150 cells")
        self.check_incomplete()

    def is_rank(self, process):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            return False
        # A launcher of its own binary, an emulator, has the command's words too.
        return b"--preloaded" in words and self.policy.encode() in words

    def test_launcher_is_interrupted(self):
        job = self.start_long()
        os.kill(job.pid, signal.SIGINT)
        job.communicate(timeout=120)
        self.check_incomplete()

    def test_two_launchers(self):
        """Where the environment speaks of two families nobody guesses."""
        if len(re.findall("; family ", info())) < 2:
            self.skipTest("only one MPI library is installed")
        done = subprocess.run([COCO, "tune"], env=environment(PMI_RANK="0", OMPI_COMM_WORLD_RANK="0"), capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^coco: error: tune: the loader finds several MPI libraries, .*\(MPICH\).*: name one with --mpi\n$")


class Cluster(InFolder):
    def test_hosts(self):
        self.tune("--collectives", "alltoall,bcast", "--to", "64", ranks=4,
                  run=["--cluster", f"--hosts 2 --share {self.folder} --cpu-shares 4096"])
        report = self.checked_report()
        self.assertEqual((report["nodes"], report["ranks_per_node"]), (2, 2))
        self.check_rules(report)


if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromTestCase({"Machine": Machine, "Cluster": Cluster}[CLASS])
    sys.exit(0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1)
