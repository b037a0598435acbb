#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Gives `coco report`'s readers real files with something wrong in them: they are read, or refused in one line. Pages are made of some
of those that are read.

usage: readers.py [--seed N] [--inputs N | --seconds N] [--found FOLDER] SOURCES
SOURCES is the root of the sources. Each file is changed as many times as --inputs says, or again and again for as long as --seconds
says. The same seed makes the same inputs. One that finds a fault is left in FOLDER.
"""
import argparse
import copy
import hashlib
import json
import os
import pathlib
import random
import re
import sys
import tempfile
import time

OPTIONS = argparse.ArgumentParser(prog="readers.py")
OPTIONS.add_argument("--seed", type=int, default=1)
OPTIONS.add_argument("--inputs", type=int, default=150)
OPTIONS.add_argument("--seconds", type=float)
OPTIONS.add_argument("--found", type=pathlib.Path)
OPTIONS.add_argument("sources", type=pathlib.Path)
GIVEN = OPTIONS.parse_args()
SOURCES = GIVEN.sources
sys.path.insert(0, str(SOURCES / "tools" / "report"))

import reading  # noqa: E402
import report  # noqa: E402

FILES = ["espresso-2-ranks.json", "espresso-2-ranks-off.json", "2-cores.txt", "neighbor-2-cores.txt"]
# Of the kind that coco tune leaves; the numbers are made up.
TUNE = {"kind": "coco tune", "libcoco": "0.1.0", "mpi": "MPICH 4.0.2", "machine": "a processor, 2 CPUs", "date": "2026-01-01", "nodes": 1,
        "ranks_per_node": 2, "domains": 1, "crowded": False, "ranks": 2, "is_complete": True,
        "cells": [{"collective": "alltoall", "block_bytes": 64, "buffers": "malloc", "degree": None, "chosen": "eager",
                   "candidates": [{"name": "eager", "samples": 5, "median_ns": 900, "low_ns": 800, "high_ns": 1100.5},
                                  {"name": "mpi", "samples": 5, "median_ns": 1900, "low_ns": 1800, "high_ns": 2100}]}]}
VALUES = [None, True, False, 0, -1, 1, 2 ** 63, 2 ** 64, 10 ** 400, 0.5, -0.0, 1e308, float("nan"), float("inf"), "", "x", "0-3,7", "\0", "\x1b[31m",
          "\ud800", "<script>", "$\\frac", [], {}, [[]], [None] * 3, {"name": 1}]
WORDS = ["{", "}", "[", "]", ",", ":", '"', "\\", "\\ud800", "null", "1e999", "-1", "NaN", "# ", "== ", " ranks", "alltoall, 2 ranks",
         "bytes  MPI_X us  library us  ratio", "0.0", "999999999999.9", "\n", "\n\n", "\r", "\u2028", "\xe9", "\0"]
PAGES = 6


def places(value):
    """(container, key) of everything in a JSON value."""
    found = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += [(value, key), *places(inner)]
    return found


def with_other_values(text, chance):
    """Some values, keys or rows of a JSON text are others, gone, or there twice."""
    root = json.loads(text)
    for _ in range(chance.randint(1, 4)):
        container, key = chance.choice(places(root) or [([None], 0)])
        how = chance.random()
        if how < 0.6:
            container[key] = copy.deepcopy(chance.choice(VALUES))  # or a list may come to lie in itself
        elif how < 0.8:
            del container[key]
        elif isinstance(container, list):
            container.insert(key, container[key])
        else:
            container[chance.choice(list(container))] = container[key]
    return json.dumps(root)


def with_other_text(text, chance):
    """Some stretches of a text are gone, doubled, or words of the grammar."""
    for _ in range(chance.randint(1, 6)):
        begin = chance.randrange(len(text) + 1)
        end = min(len(text), begin + chance.choice((0, 1, 2, 10, 100)))
        text = text[:begin] + chance.choice(("", text[begin:end] * 2, chance.choice(WORDS))) + text[end:]
    return text


def is_one_line(text):
    return bool(text) and not re.search(r"[\x00-\x1f\x7f]", text)


def check_reading(text, is_json):
    """Returns: whether it was read."""
    try:
        reading.parse(text, is_json)
        return True
    except reading.Unfit as why:
        if not is_one_line(str(why)):
            raise AssertionError(f"not one line: {why!r}") from why
        return False


def check_page(folder, text, is_json):
    path = os.path.join(folder, "input.json" if is_json else "input.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    try:
        page = report.make([path])
    except report.Unfit:
        return
    assert page.startswith("<!DOCTYPE html>") and "<script" not in page, "no page, or one with a script in it"


def originals():
    for name in FILES:
        yield (SOURCES / "bench" / "results" / name).read_text(encoding="utf-8"), name.endswith(".json")
    yield json.dumps(TUNE), True


def keep(text):
    """Shows and saves an input that found a fault."""
    print(f"the input: {text[:2000]!r}", file=sys.stderr)
    if GIVEN.found:
        GIVEN.found.mkdir(parents=True, exist_ok=True)
        data = text.encode("utf-8", "surrogatepass")
        (GIVEN.found / f"readers-{hashlib.sha1(data).hexdigest()}").write_bytes(data)


def play_round(chance):
    """Changes each file so many times. Returns: how many inputs were read, how many refused, and of how many pages were made."""
    read = refused = 0
    pages = []
    for original, is_json in originals():
        assert check_reading(original, is_json), "a file of ours is refused"
        for _ in range(GIVEN.inputs):
            change = with_other_values if is_json and chance.random() < 0.7 else with_other_text
            text = change(original, chance)
            try:
                good = check_reading(text, is_json)
            except Exception:
                keep(text)
                raise
            read, refused = read + good, refused + (not good)
            if good:
                pages.append((text, is_json))
    made = chance.sample(pages, min(PAGES, len(pages)))
    with tempfile.TemporaryDirectory() as folder:
        for text, is_json in made:
            try:
                check_page(folder, text, is_json)
            except Exception:
                keep(text)
                raise
    return read, refused, len(made)


def main():
    chance = random.Random(GIVEN.seed)
    end = time.monotonic() + (GIVEN.seconds or 0)
    sums = play_round(chance)
    while time.monotonic() < end:
        sums = [one + other for one, other in zip(sums, play_round(chance))]
    read, refused, pages = sums
    print(f"{read} inputs were read, {refused} refused; pages were made of {pages}")
    return 0 if read and refused else 1


if __name__ == "__main__":
    sys.exit(main())
