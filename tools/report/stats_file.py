# SPDX-License-Identifier: BSD-3-Clause
"""Reads what COCO_STATS=FILE.json has written (docs/stats-schema.json says what the fields mean)."""
import collections

from checks import Unfit, field, record, records

FORMAT = 1
WHERE = "the report"
CALL = {"function": "text", "comm_ranks": "count", "block_first": "count?", "block_last": "count?", "algorithm": "text",
        "handed_back": "text?", "calls": "count", "bytes": "count", "median_ns": "count", "total_ns": "count",
        "wait_ns": "count?", "staged": "count"}
HANDED_BACK = {"function": "text", "reason": "text", "times": "count", "world_ranks": "text", "why": "text", "help": "text?"}
LESSON = {"function": "text", "nodes": "count", "ranks_per_node": "count", "block_first": "count?", "block_last": "count?",
          "incumbent": "text", "candidates": "list", "calls": "count", "looks": "count", "changes": "count",
          "spent_ns": "count"}
CANDIDATE = {"name": "text", "time_ns": "count?", "low_ns": "count?", "high_ns": "count?"}

Call = collections.namedtuple("Call", CALL)
HandedBack = collections.namedtuple("HandedBack", HANDED_BACK)
Lesson = collections.namedtuple("Lesson", LESSON)
Candidate = collections.namedtuple("Candidate", CANDIDATE)
Stats = collections.namedtuple("Stats", "world_ranks calls handed_back learned")


def is_one(root):
    return "calls" in root and "handed_back" in root


def _lesson(table, where):
    lesson = record(Lesson, LESSON, table, where)
    return lesson._replace(candidates=records(Candidate, CANDIDATE, table, "candidates", where))


def read(root):
    if field(root, "format", "count", WHERE) != FORMAT:
        raise Unfit(f"{WHERE} has format {root['format']}, and this command knows format {FORMAT}")
    learned = field(root, "learned", "list", WHERE) if "learned" in root else []
    return Stats(world_ranks=field(root, "world_ranks", "count", WHERE),
                 calls=records(Call, CALL, root, "calls", WHERE),
                 handed_back=records(HandedBack, HANDED_BACK, root, "handed_back", WHERE),
                 learned=[_lesson(table, f"{WHERE}, learned[{number}]") for number, table in enumerate(learned)])
