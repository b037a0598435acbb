# SPDX-License-Identifier: BSD-3-Clause
"""Reads a file and tells by its content what it is."""
import json

import bench_file
import stats_file
import tune_file
from checks import Unfit

JSON_KINDS = (stats_file, tune_file)


def _parse(text):
    try:
        root = json.loads(text)
    except ValueError as why:
        raise Unfit(f"not JSON: {why}") from why
    except RecursionError as why:
        raise Unfit("JSON that is nested too deeply") from why
    if not isinstance(root, dict):
        raise Unfit("JSON, but no report")
    return root


def parse(text, is_json):
    """Returns: a Stats, a Tune or a Bench. Raises: Unfit"""
    if not is_json:
        return bench_file.read(text)
    root = _parse(text)
    for kind in JSON_KINDS:
        if kind.is_one(root):
            return kind.read(root)
    raise Unfit("JSON, but neither of COCO_STATS=FILE.json nor of coco tune")


def read(path):
    """Raises: Unfit"""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except UnicodeDecodeError as why:
        raise Unfit("not a text file") from why
    except OSError as why:
        raise Unfit(f"cannot be read: {why.strerror}") from why
    return parse(text, is_json=path.endswith(".json") or text.lstrip()[:1] in ("{", "["))
