#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests the manual pages: man and mandoc have nothing to say against them, and nothing of the command is missing.

usage: manual_test.py COCO MAKE_MANUAL PAGE...
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

COCO, MAKE_MANUAL, *PAGES = sys.argv[1:]
del sys.argv[1:]
LIMIT_S = 60


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, **more)


def shown(page):
    """The page as man prints it, in lines that are long enough for no word to be divided."""
    result = run("man", "--warnings", "--encoding=ascii", "-l", page, env=dict(os.environ, MANWIDTH="1000", MANROFFOPT="", LC_ALL="C.UTF-8"))
    return result.stdout, result.stderr


def page_of(name):
    return next(page for page in PAGES if os.path.basename(page) == name)


@unittest.skipUnless(shutil.which("man") and shutil.which("mandoc"), "man-db or mandoc is not installed")
class Manual(unittest.TestCase):
    def setUp(self):
        self.about = json.loads(run(COCO, "--describe").stdout)

    def test_no_warnings(self):
        for page in PAGES:
            with self.subTest(page):
                text, errors = shown(page)
                self.assertEqual(errors, "")
                self.assertIn("SEE ALSO", text)
                lint = run("mandoc", "-Tlint", "-Wstyle", page)
                self.assertEqual(lint.stdout + lint.stderr, "")

    def test_a_warning_is_seen(self):
        with tempfile.NamedTemporaryFile("w", suffix=".1") as page:
            page.write(".TH X 1\n.SH NAME\nx \\- y\n.BOGUS\n")
            page.flush()
            self.assertNotEqual(run("mandoc", "-Tlint", "-Wstyle", page.name).stdout, "")
            self.assertNotEqual(shown(page.name)[1], "")

    def test_all_commands_and_options(self):
        text = shown(page_of("coco.1"))[0]
        self.assertGreaterEqual({c["name"] for c in self.about["commands"]}, {"run", "info", "doctor"})
        for command in self.about["commands"]:
            self.assertRegex(text, rf"(?m)^ +coco {command['name']}\b", "synopsis")
            section = re.search(rf"(?ms)^   {command['name']}\n(.*?)(?=^   \w|^\w)", text)
            self.assertIsNotNone(section, command["name"])
            for option in command["options"]:
                for name in option["names"]:
                    self.assertIn(name, text if name in ("-h", "--help") else section[1])

    def test_words_that_are_needed_have_no_brackets(self):
        text = shown(page_of("coco.1"))[0]
        self.assertRegex(text, r"(?m)^ +coco run PROGRAM \[ARGUMENT")
        self.assertRegex(text, r"(?m)^ +coco report \[options\] FILE")
        self.assertRegex(text, r"(?m)^ +coco info \[options\] \[PROGRAM\]")

    def test_all_settings_and_algorithms(self):
        text = shown(page_of("libcoco.7"))[0]
        for setting in (one for one in self.about["settings"] if not one["summary"].startswith("tests only: ")):
            self.assertRegex(text, rf"(?m)^ +{setting['name']}\b")
            self.assertIn(setting["choices"], text)
        for algorithm in self.about["algorithms"]:
            self.assertRegex(text, rf"(?m)^ +{algorithm['name']}\b")
        for collective in self.about["collectives"]:
            self.assertIn(collective["function"], text)

    def test_a_new_command_comes_in(self):
        """A command with a subcommand, an option and a setting more."""
        more = json.loads(json.dumps(self.about))
        option = {"names": ["--deep"], "positional": "", "description": "look 'deeper': .so", "type": "TEXT:{a,b}", "words": 1,
                  "default": "a", "required": False}
        more["commands"].append({"name": "dream", "description": "dreams.", "options": [option]})
        more["settings"].append({"name": "COCO_DREAM", "choices": "1 or 0", "default": "0", "summary": "dreams"})
        with tempfile.TemporaryDirectory() as folder:
            description = os.path.join(folder, "coco.json")
            with open(description, "w", encoding="utf-8") as file:
                json.dump(more, file)
            templates = os.path.join(os.path.dirname(MAKE_MANUAL), "..")
            made = {name: run(MAKE_MANUAL, description, os.path.join(templates, name)).stdout
                    for name in ("docs/man/coco.1.in", "docs/man/libcoco.7.in", "tools/completion/coco.bash.in", "tools/completion/_coco.in")}
            page = os.path.join(folder, "coco.1")
            with open(page, "w", encoding="utf-8") as file:
                file.write(made["docs/man/coco.1.in"])
            text, errors = shown(page)
            self.assertEqual(errors, "")
            self.assertRegex(text, r"(?s)   dream\n.*--deep a\|b\n +Look 'deeper': .so\. +Default: a\.")
        self.assertIn("COCO_DREAM", made["docs/man/libcoco.7.in"])
        self.assertRegex(made["tools/completion/coco.bash.in"], "--deep\\) following=\\('list:a,b'\\)")
        self.assertIn("'--deep[look '\\''deeper'\\''\\: .so]:value:(a b)'", made["tools/completion/_coco.in"])


if __name__ == "__main__":
    unittest.main()
