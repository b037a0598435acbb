#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads a table of MPI runs (TOML), and prints each run for Meson, which makes a test of it.

usage: runs.py FAMILY TABLE       FAMILY is mpich or openmpi; a table's head explains the keys of its rows (KEYS below)

A run is a line of fields with tabs between them: name, driver, words before the driver's own, words of mpi_run, program,
its arguments, "sanitized" if it is also run with the sanitizers. Between the words of a field is a unit separator (\\x1f).
"""
import itertools
import os
import shlex
import sys
import tomllib

# What may stand in a row, and what of it in a set of words that rows share.
SET_KEYS = {"algorithms", "settings", "ran", "options"}
KEYS = SET_KEYS | {"covers", "program", "arguments", "ranks", "calls", "cases", "variant", "name", "with", "family", "driver", "openmpi",
                   "before", "hosts", "sanitized"}
MPI_RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mpi_run")
NAME = "{program} {ranks} ranks {variant}"
NAME_OVER_NODES = "{program} {ranks} ranks on {nodes} nodes {variant}"


class BadTable(Exception):
    """The table says what it may not; the text says where and what."""


def check_row(row, keys, required, what):
    wrong = sorted(set(row) - keys) + [f"no {key}" for key in sorted(required - set(row))]
    if wrong:
        raise BadTable(f"{what}: {', '.join(wrong)}")


def load(path):
    """The rows of a table, the sets of words that they may name, and the groups of collectives."""
    with open(path, "rb") as file:
        table = tomllib.load(file)
    check_row(table, {"uses", "groups", "sets", "run"}, {"run"}, path)
    groups, sets = {}, {}
    if "uses" in table:
        _, sets, groups = load(os.path.join(os.path.dirname(path), table["uses"]))
    groups |= table.get("groups", {})
    sets |= table.get("sets", {})
    for name, words in sets.items():
        check_row(words, SET_KEYS, set(), f"set {name}")
    for row in table["run"]:
        check_row(row, KEYS, {"covers", "program"}, f"a run of {row.get('program')}")
    return table["run"], sets, groups


def pairs(text, groups):
    """'alltoall,bcast=leader:radix=4' -> ('alltoall', 'leader:radix=4'), ('bcast', 'leader:radix=4')"""
    for word in text.split():
        left, _, value = word.partition("=")
        for name in left.split(","):
            for collective in groups.get(name, [name]):
                yield collective, value


def runs_of(row, family):
    """What differs from run to run of a row, as the fields of its texts."""
    for case, shape in itertools.product(row.get("cases", [{}]), row.get(family, row.get("ranks", [None]))):
        fields = {"program": row["program"], "variant": "default", "nodes": "", "mpi_run": MPI_RUN}
        fields |= {"case": case, "variant": case} if isinstance(case, str) else case
        fields["shape"] = fields.get("ranks") if shape is None else shape
        if shape is not None:
            fields["ranks"], _, fields["nodes"] = str(shape).partition(" on ")
        if "calls" in row:
            fields["calls"] = row["calls"][fields["ranks"]]
        yield fields


def mpi_run_words(row, fields, sets, groups):
    """What mpi_run is asked for: by the number of ranks, by the sets that the row names, by the row itself."""
    # Another driver than mpi_run says itself how many ranks there are, and on how many nodes.
    words = [] if "driver" in row else ["-n", str(fields["ranks"])]
    if fields["nodes"] and "driver" not in row:
        words += ["--env", f"COCO_TOPOLOGY=nodes={fields['nodes']}"]
    if "hosts" in row:
        words += ["--cluster", row["hosts"].format(**fields) + " --cpu-shares 4096"]
    forced, ran = [], []
    for part in [sets[name.format(**fields)] for name in row.get("with", [])] + [row]:
        asked = {key: text.format(**fields) for key, text in part.items() if key in SET_KEYS and key != "options"}
        forced += pairs(asked.get("algorithms", ""), groups)
        ran += [("forced", "")] if asked.get("ran") == "forced" else pairs(asked.get("ran", ""), groups)
        words += itertools.chain(*(["--env", setting] for setting in shlex.split(asked.get("settings", ""))))
        words += [word.format(**fields) for word in part.get("options", [])]
    if ("forced", "") in ran:
        ran.remove(("forced", ""))
        ran += forced
    for collective, algorithm in forced:
        words += ["--env", f"COCO_{collective.upper()}={algorithm}"]
    for collective, algorithm in ran:
        words += ["--ran", f"{collective}={algorithm.split(':')[0]}"]
    return words


def as_run(row, fields, sets, groups):
    """One run, as the fields of its line."""
    fields["variant"] = row.get("variant", fields["variant"]).format(**fields)
    name = row.get("name", NAME_OVER_NODES if fields["nodes"] else NAME).format(**fields)
    before, after = (shlex.split(row.get(key, "").format(**fields)) for key in ("before", "arguments"))
    return [[name.replace(":", " ")], [row.get("driver", "mpi_run")], before, mpi_run_words(row, fields, sets, groups),
            [row["program"]], after, ["sanitized"] if fields["shape"] in row.get("sanitized", []) else []]


def all_runs(family, path):
    rows, sets, groups = load(path)
    here = os.path.dirname(os.path.abspath(path))
    for row in rows:
        if row.get("family", family) != family:
            continue
        for fields in runs_of(row, family):
            try:
                yield as_run(row, fields | {"here": here}, sets, groups)
            except KeyError as unknown:
                raise BadTable(f"a run of {row['program']}: there is no {unknown}") from unknown


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        runs = list(all_runs(*sys.argv[1:]))
    except (BadTable, tomllib.TOMLDecodeError) as why:
        sys.exit(f"{sys.argv[2]}: {why}")
    # Without an end of line behind the last one: Meson splits at them.
    sys.stdout.write("\n".join("\t".join("\x1f".join(words) for words in run) for run in runs))


if __name__ == "__main__":
    main()
