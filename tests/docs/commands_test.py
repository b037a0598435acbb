#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands that the pages show, with one MPI library: each block of shell in README.md and docs/, as it stands.

Blocks of a page run one after the other in a folder that looks like a checkout with a build, and in which ./app is an MPI program. What
cannot run on a test machine is in NOT_RUN, with the reason; its syntax, and the names that it uses, are checked all the same.

usage: commands_test.py BUILD SOURCES MPI        BUILD: the folder with libcoco.so and coco; MPI: see scripts/mpis.py
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCES = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
MPI_NAME = sys.argv[3]
del sys.argv[1:4]
sys.dont_write_bytecode = True
sys.path.insert(1, str(SOURCES / "scripts"))
import mpis  # noqa: E402
import pages  # noqa: E402

LIMIT_S = 120  # of a block
HERE = pathlib.Path(__file__).resolve().parent
MPI = mpis.find(MPI_NAME)

# The beginning of a command: why it is not run here.
NOT_RUN = {
    r"scripts/(demo|test|build)\b": "installs packages and compiles for minutes",
    r"scripts/package-deb\b": "compiles for minutes; tests/installed/packages.sh packs what is built",
    r"apt install\b": "changes this machine; tests/installed/packages.sh does it in a copy of its files",
    r"meson (setup|install)\b": "compiles for minutes; tests/installed/install_test.py installs",
    r"module\b": "needs a shell of a module system; tests/packaging/modulefiles_test.py does it with two",
    r"srun\b": "needs Slurm's daemons",
    r"mpiexec .*\bapptainer\b": "Apptainer is not in Debian 12",
    r"git (tag|push)\b": "makes a release",
    r"docker\b": "needs a daemon and images",
    r"(name=\$\()?scripts/cluster\b": "needs root's rights; the suite cluster does it",
    r"bench/cache/run\b": "takes minutes",
    r"bench/simulate/run (?!--list)": "takes minutes to hours; --check is a test of its own",
    r"python3 bench/programs\.py\b": "takes half an hour; the suite programs runs them once",
}
# The same, for the other family of MPI libraries, whose tests run it.
OTHERS_OF = {"mpich": r"mpirun\b", "openmpi": r"mpiexec (-f|\$\(coco env --mpich\))"}
LINKS = ("scripts", "bench", "tests", "packaging")  # what commands use of a checkout


def reason(command):
    """Why a command is not run; "" if it is."""
    if re.match(OTHERS_OF[MPI.family], command.text):
        return "is for another MPI library"
    return next((why for pattern, why in NOT_RUN.items() if re.match(pattern, command.text)), "")


def with_reasons(block):
    """The commands of a block, each with the reason why it is not run, or "". What follows `module load` relies on it."""
    found, loaded = [], ""
    for command in block.commands():
        found.append((command, loaded or reason(command)))
        if command.text.startswith("module load"):
            loaded = "needs what module load has loaded"
    return found


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, **more)


class Place:
    """Where commands run: an installed tree and the MPI's programs in PATH, and a folder for each page."""

    def __init__(self, folder):
        self.folder = folder
        done = run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", folder / "root")
        assert done.returncode == 0, done.stdout + done.stderr
        commands = [path for path in folder.glob("root/**/bin/coco") if path.is_file()]
        self.prefix = commands[0].parent.parent
        tools = folder / "tools"
        tools.mkdir()
        for name, target in {"mpiexec": MPI.launcher, "mpirun": MPI.launcher, "mpicc": MPI.mpicc}.items():
            (tools / name).write_text(f'#!/bin/sh\nexec {shlex.quote(target)} "$@"\n', encoding="utf-8")
            (tools / name).chmod(0o755)
        outer = {name: value for name, value in os.environ.items() if not name.startswith("COCO_") and name != "LD_PRELOAD"}
        self.environment = outer | MPI.environment() | {
            "PATH": f"{tools}:{self.prefix}/bin:{os.environ['PATH']}", "XDG_CACHE_HOME": str(folder / "cache"),
            "OMPI_MCA_mpi_yield_when_idle": "1"}
        self.app = folder / "app"
        done = run(MPI.mpicc, HERE / "app.c", "-o", self.app)
        assert done.returncode == 0, done.stderr

    def page(self, name):
        """A new folder for a page's commands."""
        folder = self.folder / name.replace("/", "-")
        folder.mkdir()
        for link in LINKS:
            (folder / link).symlink_to(SOURCES / link)
        (folder / "build").symlink_to(BUILD)
        shutil.copy(self.app, folder / "app")
        shutil.copy(HERE / "app.c", folder / "app.c")
        (folder / "hosts").write_text("localhost:2\n" if MPI.family == "mpich" else "localhost slots=2\n", encoding="utf-8")
        return folder

    def script(self, block):
        """A block as a script that ends at its first command that fails, and names it. Returns: the script, its commands that run"""
        lines, ran = ["set -eo pipefail", "trap 'echo \"FAILED: $at\" >&2' ERR"], []
        for command, why in with_reasons(block):
            if why:
                continue
            text = re.sub(r"(mpiexec|mpirun)( .*)? -n \d+", r"\1\2 -n 2", command.text)
            text = re.sub(r"/opt/libcoco/[\d.]+", str(self.prefix), text)
            text = re.sub(r"\bcoco tune\b(?!.*--minutes)", "coco tune --minutes 0.05", text)  # of five
            lines += [f"at={shlex.quote(f'{command.where}: {command.text}')}", text]
            ran.append(command)
        return "\n".join(lines) + "\n", ran

    def run_page(self, name):
        """Returns: the commands that ran, what failed"""
        folder, ran = self.page(name), []
        for block in pages.blocks(SOURCES, name):
            if block.language == "toml":
                (folder / "my.toml").write_text(block.text, encoding="utf-8")
            if block.language != "sh":
                continue
            script, commands = self.script(block)
            if not commands:
                continue
            ran += commands
            done = run("bash", "-c", script, cwd=folder, env=self.environment | {"PBS_O_WORKDIR": str(folder)})
            if done.returncode != 0:
                return ran, f"{block.page}:{block.line}: status {done.returncode}\n{done.stdout}{done.stderr}"
        return ran, ""


def is_run_here(page):
    """Whether a page's commands are run with this MPI: with Open MPI only those of pages that name its launcher, as MPICH's tests run
    all others."""
    return MPI.family == "mpich" or any(re.match(OTHERS_OF["mpich"], command.text) for block in pages.blocks(SOURCES, page)
                                        if block.language == "sh" for command in block.commands())


def all_blocks():
    return [block for page in pages.pages(SOURCES) for block in pages.blocks(SOURCES, page)]


def all_commands():
    return [command for block in all_blocks() if block.language == "sh" for command in block.commands()]


class Written(unittest.TestCase):
    """What can be told without running."""

    def setUp(self):
        described = json.loads(run(BUILD / "coco", "--describe").stdout)
        self.names = pages.Names(described, SOURCES)

    def test_blocks_are_fenced(self):
        for page in pages.pages(SOURCES):
            self.assertEqual(pages.unfenced((SOURCES / page).read_text(encoding="utf-8")), [], page)

    def test_languages(self):
        for block in all_blocks():
            self.assertIn(block.language, {"sh", "toml", "cmake", "text"}, f"{block.page}:{block.line}")

    def test_syntax(self):
        for block in all_blocks():
            if block.language == "sh":
                self.assertEqual(pages.syntax_error(block), "", f"{block.page}:{block.line}")

    def test_names(self):
        for command in all_commands():
            self.assertEqual(self.names.wrong(command.text), [], command.where)

    def test_settings_in_the_text(self):
        for page in pages.for_users(SOURCES):
            for name in re.findall(r"`(COCO_[A-Z_]+[A-Z])\b[^<`]*`", (SOURCES / page).read_text(encoding="utf-8")):
                self.assertIn(name, self.names.settings, page)

    def test_wrong_names_are_found(self):
        wrong = {"coco rnu ./app": "command", "mpiexec -n 2 coco doctor --jsn ./app": "option", "x $(coco env --slrm) ./app": "option",
                 "COCO_STAT=1 ./app": "setting", "scripts/clusters up": "no scripts", "scripts/cluster up --hostss 4": "option",
                 "/opt/libcoco/0.1.0/bin/coco inof": "command"}
        for text, word in wrong.items():
            found = self.names.wrong(text)
            self.assertEqual(len(found), 1, text)
            self.assertIn(word, found[0])
        self.assertEqual(self.names.wrong("coco run ./app --its-own; coco doctor --json ./app --its-own"), [])

    def test_wrong_syntax_is_found(self):
        self.assertNotEqual(pages.syntax_error(pages.Block("x", 1, "sh", "coco run 'app\n")), "")

    def test_reasons_are_needed(self):
        texts = [command.text for command in all_commands()]
        for pattern in NOT_RUN:
            self.assertTrue(any(re.match(pattern, text) for text in texts), f"no page has {pattern}")


class Run(unittest.TestCase):
    """What runs."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="coco-docs-")
        cls.place = Place(pathlib.Path(cls.folder.name))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_pages(self):
        ran = []
        for page in filter(is_run_here, pages.pages(SOURCES)):
            with self.subTest(page):
                commands, failed = self.place.run_page(page)
                ran += commands
                self.assertEqual(failed, "")
        for block in all_blocks():
            for command, why in with_reasons(block) if block.language == "sh" and is_run_here(block.page) else []:
                self.assertTrue(why or command in ran, command)
                print(f"{command.where}: {why or 'ran'}: {command.text}")

    def test_a_failing_command_is_named(self):
        script, _ = self.place.script(pages.Block("x.md", 3, "sh", "true\nmpiexec -n 64 false\ntrue\n"))
        done = run("bash", "-c", script, env=self.place.environment)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("FAILED: x.md:4: mpiexec -n 64 false", done.stderr)

    def test_the_app_needs_libcoco(self):
        done = run("mpiexec", "-n", "2", self.place.app, env=self.place.environment)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("libcoco is not loaded", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
