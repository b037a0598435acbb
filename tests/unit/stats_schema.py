#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Validates a report against docs/stats-schema.json, and that the schema refuses damaged ones.

usage: stats_schema.py SAMPLE SCHEMA       exit status 77 where python3-jsonschema is missing
"""
import copy
import json
import pathlib
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed")
    sys.exit(77)


def damaged(report):
    """(what was done, the report with it)"""
    for path in (["format"], ["calls", 0, "algorithm"], ["calls", 0, "wait_ns"], ["calls", 0, "messages"], ["handed_back", 0, "text"]):
        worse = copy.deepcopy(report)
        where = worse
        for step in path[:-1]:
            where = where[step]
        del where[path[-1]]
        yield f"{path} removed", worse
    for key, value in (("calls", -1), ("wire_bytes", "many"), ("median_ns", "1 us"), ("world_ranks", "all"), ("surprise", 1)):
        worse = copy.deepcopy(report)
        worse["calls"][0][key] = value
        yield f"{key} = {value}", worse


def main():
    report = json.loads(subprocess.run([sys.argv[1]], check=True, capture_output=True, timeout=30).stdout)
    schema = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    faults = [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(report)]
    faults += [f"not refused: {what}" for what, worse in damaged(report) if validator.is_valid(worse)]
    print("\n".join(faults) or f"{len(report['calls'])} rows, {len(report['handed_back'])} hints: valid")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
