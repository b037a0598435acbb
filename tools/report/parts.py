# SPDX-License-Identifier: BSD-3-Clause
"""What a page is made of: sections, one for each file or comparison, of parts, of plots with their numbers."""
from typing import NamedTuple, Optional


class Table(NamedTuple):
    columns: list
    rows: list  # of lists of texts, or of numbers that are shown as they are


class Plot(NamedTuple):
    title: str
    says: str   # a sentence: what is seen
    drawn: str  # SVG by drawing.py
    table: Table


class Advice(NamedTuple):
    what: str
    why: str
    help: Optional[str]  # what would help; None: nothing


class Part(NamedTuple):
    title: str
    says: list           # paragraphs
    plots: list = []
    table: Table = None  # one that is seen at once
    advice: list = []


class Section(NamedTuple):
    title: str
    about: list  # paragraphs
    parts: list


PLOTS_MOST = 12
LINES_MOST = 7  # of a plot


def most_important(things, weight, most=PLOTS_MOST):
    """The things that are shown, and a list with a paragraph about the others: empty if there are none."""
    order = sorted(things, key=weight, reverse=True)
    left_out = len(order) - most
    return order[:most], [f"Shown are the {most} with most time; {left_out} more have less."] if left_out > 0 else []
