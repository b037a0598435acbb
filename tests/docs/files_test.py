#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Looks for the files that pages about the code name: each path in backticks is one of a file or folder, from the root or from lib/.

usage: files_test.py SOURCES
"""
import pathlib
import re
import sys
import unittest

SOURCES = pathlib.Path(sys.argv.pop(1)).resolve()
PAGES = ("ARCHITECTURE.md", "docs/how-to-read-this.md")
QUOTED = re.compile(r"`([^`\n]+)`")
# A path has a slash in it or ends as files do. `*` stands for any characters. What begins with a slash is the system's.
PATH = re.compile(r"[\w*][\w.*-]*(/[\w.*-]+)*(/|/[\w.*-]+|\.(cc|h|S|sh|py|md|build))")


def paths_in(text):
    return [quoted for quoted in QUOTED.findall(text) if PATH.fullmatch(quoted)]


def is_there(path):
    return any(any(folder.glob(path.rstrip("/"))) for folder in (SOURCES, SOURCES / "lib"))


class Files(unittest.TestCase):
    def test_they_exist(self):
        for page in PAGES:
            paths = paths_in((SOURCES / page).read_text(encoding="utf-8"))
            self.assertGreater(len(paths), 10, page)
            self.assertEqual([path for path in paths if not is_there(path)], [], page)

    def test_reading_order(self):
        """Each step of the way through the code names a file of the code."""
        steps = re.findall(r"^\d+\. .*(?:\n {3}.*)*", (SOURCES / "docs/how-to-read-this.md").read_text(encoding="utf-8"), re.M)
        self.assertEqual(len(steps), 10)
        for step in steps:
            self.assertTrue(any((SOURCES / path).is_file() for path in paths_in(step)), step)

    def test_paths_are_told_from_other_words(self):
        text = ("`lib/exec/walk.h`, `meson.build`, `tools/`, `tools/report/*_plots.py`; not `walk()`, `/proc/PID/fd/N`, `COCO_STATS`, "
                "`slots[epoch % 16]`, `copy`, lib/exec/run.cc")
        self.assertEqual(paths_in(text), ["lib/exec/walk.h", "meson.build", "tools/", "tools/report/*_plots.py"])

    def test_wrong_paths_are_found(self):
        for path in ("exec/no_such_file.cc", "no_such_folder/", "walk.h", "tools/report/*_no_such.py"):
            self.assertFalse(is_there(path), path)
        for path in ("exec/walk.h", "lib/exec/walk.h", "lib/", "tests/model", "tools/report/*_plots.py", "scripts/check_rooms"):
            self.assertTrue(is_there(path), path)


if __name__ == "__main__":
    unittest.main()
