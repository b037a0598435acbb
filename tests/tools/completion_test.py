#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests the completions, in shells that believe that somebody types: with a terminal and the key Tab.

usage: completion_test.py COCO BASH_FOLDER ZSH_FOLDER      the folders have the completions for each shell
"""
import itertools
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

COCO, BASH_FOLDER, ZSH_FOLDER = sys.argv[1:4]
del sys.argv[1:4]
LIMIT_S = 60
BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"
READY = "@READY@"


class Shell:
    """A shell in a terminal."""
    def __init__(self, command, setup, folder):
        plain = {k: v for k, v in os.environ.items() if not k.startswith("COCO_")}
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(plain | {"TERM": "dumb", "HOME": folder, "PATH": f"{os.path.dirname(COCO)}:{plain['PATH']}", "COLUMNS": "400"})
            os.execvp(command[0], command)
        self.text = ""
        for line in setup:
            self.type(line + "\n")
        self.type(f"PS1=; echo {READY[:3]}''{READY[3:]}\n")
        self.wait_for(READY)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, pattern):
        end = time.monotonic() + LIMIT_S
        while not (found := re.search(pattern, self.text, re.S)):
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"the shell did not print {pattern!r}: {self.text[-2000:]!r}")
            self.text += os.read(self.terminal, 65536).decode(errors="replace")
        self.text = self.text[found.end():]
        return found

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.process, 0)


class Completion:
    """What both shells do, in one process for all tests. ask(line): the words that are offered, or the one that was put in."""
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.folder = place.name
        make_files(cls.folder)
        cls.start()

    def test_commands(self):
        self.assertLessEqual({"run", "info", "doctor"}, set(self.ask("coco ")))
        names = {c["name"] for c in json.loads(subprocess.run([COCO, "--describe"], capture_output=True, check=True).stdout)["commands"]}
        self.assertLessEqual(names, set(self.ask("coco ")))
        self.assertEqual(self.ask("coco doc"), ["doctor"])

    def test_options(self):
        self.assertLessEqual({"--json", "--no-mpi", "--help"}, set(self.ask("coco doctor --")))
        self.assertEqual(self.ask("coco doctor --js"), ["--json"])
        self.assertEqual(self.ask("coco info --al"), ["--algorithms"])
        self.assertFalse([word for word in self.ask("coco doctor --") if "carry" in word], "hidden options are offered")

    def test_collectives(self):
        self.assertLessEqual({"alltoall", "bcast", "neighbor_allgatherv"}, set(self.ask("coco info --explain ")))
        self.assertEqual(self.ask("coco info --explain bc"), ["bcast"])
        self.assertNotIn("alltoall", self.ask("coco info --explain bcast "))

    def test_files(self):
        self.assertEqual(self.ask("coco doctor ./a_pro"), ["./a_program"])
        self.assertEqual(self.ask("coco info --rules ./a_pro"), ["./a_program"])

    def test_run(self):
        self.assertEqual(self.ask("coco run ./a_pro"), ["./a_program"])
        self.assertEqual(self.ask("coco run ./a_program ./a_fi"), ["./a_file"])


@unittest.skipUnless(shutil.which("bash"), "bash is not installed")
class Bash(Completion, unittest.TestCase):
    before = ""  # what the shell reads first

    @classmethod
    def start(cls):
        """A shell that calls the function as readline does, for each line that it reads, and then prints what is offered and READY."""
        script = f"""{cls.before}
            . {BASH_FOLDER}/coco
            while IFS= read -r line; do
                unset COMPREPLY
                COMP_LINE=$line COMP_POINT=${{#line}}
                IFS=' ' read -ra COMP_WORDS <<<"$line"
                [[ $line != *' ' ]] || COMP_WORDS+=('')
                COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
                _coco coco "${{COMP_WORDS[COMP_CWORD]}}" 2>/dev/null </dev/null
                printf '%s\\n' "${{COMPREPLY[@]}}" {READY}
            done"""
        cls.errors = open(f"{cls.folder}/errors", "w+", encoding="utf-8")
        cls.addClassCleanup(cls.errors.close)
        cls.shell = subprocess.Popen(["bash", "--norc", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=cls.errors,
                                     bufsize=1, text=True, cwd=cls.folder)
        cls.addClassCleanup(cls.stop)

    @classmethod
    def stop(cls):
        cls.shell.stdin.close()
        cls.shell.stdout.close()
        cls.shell.wait(LIMIT_S)

    def ask(self, line):
        self.shell.stdin.write(line + "\n")
        offered = list(itertools.takewhile(lambda word: word != f"{READY}\n", self.shell.stdout))
        self.errors.seek(0)
        self.assertEqual(self.errors.read(), "")
        self.assertIsNone(self.shell.poll())
        return "".join(offered).split()

    def typed(self, line):
        """What a program gets as its arguments when somebody types a line."""
        setup = self.before.splitlines() + [f". {BASH_FOLDER}/coco", "coco() { local IFS=,; echo \"<$*>\"; }"]
        shell = Shell(["bash", "--norc", "--noprofile", "-i"], setup, self.folder)
        self.addCleanup(shell.close)
        shell.type(line + "\n")
        return shell.wait_for(r"\n<(.*?)>\r?\n")[1].split(",")

    def test_typed(self):
        self.assertEqual(self.typed("coco doc\t--js\t./a_pro\t"), ["doctor", "--json", "./a_program"])
        self.assertEqual(self.typed("coco info --exp\tbca\t4 8"), ["info", "--explain", "bcast", "4", "8"])

    def test_equals_sign(self):
        self.assertEqual(self.typed("coco info --explain=bca\t"), ["info", "--explain=bcast"])


class BashWithItsCompletions(Bash):
    """With the package bash-completion, which knows what follows other programs."""
    before = f". {BASH_COMPLETION}"

    @classmethod
    def setUpClass(cls):
        if not os.path.exists(BASH_COMPLETION):
            raise unittest.SkipTest("bash-completion is not installed")
        super().setUpClass()

    def test_words_of_a_program(self):
        self.assertEqual(self.typed("coco run chmod --recurs\t"), ["run", "chmod", "--recursive"])


@unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
class Zsh(Completion, unittest.TestCase):
    @classmethod
    def start(cls):
        # The key ^] shows what is offered and what is in the line, and clears it. No sequence of keys begins with it: zsh waits for the rest.
        lines = [f"fpath=({ZSH_FOLDER} $fpath)", "autoload -Uz compinit", "compinit -u -D", "unsetopt prompt_cr prompt_sp zle_bracketed_paste",
                 "unset zle_bracketed_paste", "setopt no_list_beep no_beep", "zstyle ':completion:*' list-separator '' verbose no",
                 "LISTMAX=10000", "zstyle ':completion:*' verbose no"]
        cls.shell = Shell(["zsh", "-f", "-i"], lines, cls.folder)
        cls.addClassCleanup(cls.shell.close)
        cls.shell.type(WIDGET)
        cls.shell.wait_for("widget is there")

    def ask(self, line):
        self.shell.type(line + "\x1d")
        offered = self.shell.wait_for(r"<offered>(.*?)</offered>")[1].split()
        inserted = self.shell.wait_for(r"<line>(.*?)</line>")[1].rstrip()
        self.shell.wait_for("</all>")
        return [inserted.split(" ")[-1]] if inserted != line.rstrip() else offered

    def test_syntax(self):
        self.assertEqual(subprocess.run(["zsh", "-n", f"{ZSH_FOLDER}/_coco"], capture_output=True, check=False).stderr, b"")

    def test_values_of_variables(self):
        self.assertEqual(self.ask("COCO_ALLTOALL=numa"), ["COCO_ALLTOALL=numa_morton"])
        self.assertEqual(self.ask("COCO_BCAST=segm"), ["COCO_BCAST=segmented"])


# compadd tells what is offered before it adds it.
WIDGET = r"""
compadd() { local -a words; if [[ ${@[(I)-[OAD]]} -eq 0 ]]; then builtin compadd -O words "$@"; OFFERED+=($words); fi; builtin compadd "$@" }
show() { typeset -ga OFFERED=(); zle complete-word; print; print -r "<offered>$OFFERED</offered><line>$BUFFER</line></all>"; BUFFER= ; zle reset-prompt }
zle -N show
bindkey '^]' show
print widget is'' there
"""


def make_files(folder):
    for name, mode in (("a_program", 0o755), ("a_file", 0o644)):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod(path, mode)


if __name__ == "__main__":
    unittest.main()
