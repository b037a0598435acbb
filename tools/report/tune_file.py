# SPDX-License-Identifier: BSD-3-Clause
"""Reads the report that `coco tune` leaves beside its policy file."""
import collections

from checks import field, record, records

KIND = "coco tune"
WHERE = "the report of coco tune"
TUNE = {"libcoco": "text", "mpi": "text", "machine": "text", "date": "text", "nodes": "count", "ranks_per_node": "count",
        "domains": "count", "crowded": "flag", "ranks": "count", "is_complete": "flag", "cells": "list"}
CELL = {"collective": "text", "block_bytes": "count", "buffers": "text", "degree": "count?", "candidates": "list",
        "chosen": "text"}
CANDIDATE = {"name": "text", "samples": "count", "median_ns": "number", "low_ns": "number", "high_ns": "number"}

Tune = collections.namedtuple("Tune", TUNE)
Cell = collections.namedtuple("Cell", CELL)
Candidate = collections.namedtuple("Candidate", CANDIDATE)


def is_one(root):
    return root.get("kind") == KIND


def _cell(table, where):
    return record(Cell, CELL, table, where)._replace(candidates=records(Candidate, CANDIDATE, table, "candidates", where))


def read(root):
    cells = field(root, "cells", "list", WHERE)
    return record(Tune, TUNE, root, WHERE)._replace(
        cells=[_cell(table, f"{WHERE}, cells[{number}]") for number, table in enumerate(cells)])
