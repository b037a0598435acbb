# SPDX-License-Identifier: BSD-3-Clause
"""Takes values out of JSON that anybody may have written. What is not as it should be raises Unfit, which names the place."""

MOST = 2 ** 64


class Unfit(Exception):
    """No report can be made of a file; the text says why."""


def printable(text):
    """The text without characters that neither HTML nor a terminal can show."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < MOST


KINDS = {
    "count": lambda value: _is_number(value) and isinstance(value, int),
    "number": _is_number,
    "text": lambda value: isinstance(value, str),
    "flag": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list),
}


def field(table, name, kind, where):
    """One value. kind: one of KINDS; with a ? behind it null is allowed, too."""
    if not isinstance(table, dict) or name not in table:
        raise Unfit(f"{where} has no {name}")
    value = table[name]
    if value is None and kind.endswith("?"):
        return None
    if not KINDS[kind.rstrip("?")](value):
        raise Unfit(f"{name} of {where} is not what it should be, a {kind.rstrip('?')}")
    return printable(value) if isinstance(value, str) else value


def record(make, kinds, table, where):
    """make: a named tuple whose fields have these kinds."""
    return make(**{name: field(table, name, kind, where) for name, kind in kinds.items()})


def records(make, kinds, table, name, where):
    """A list of such tables."""
    return [record(make, kinds, row, f"{where}, {name}[{number}]") for number, row in enumerate(field(table, name, "list", where))]
