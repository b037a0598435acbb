# SPDX-License-Identifier: BSD-3-Clause
"""Numbers as people read them. K, M and G are powers of 1024, as in all of libcoco."""
import math

TIMES = ((1, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"))


def size(count):
    """1500 -> "1500", 65536 -> "64K" """
    for letter in ("", "K", "M", "G", "T"):
        if count < 1024 or count % 1024:
            return f"{count}{letter}"
        count //= 1024
    return f"{count}P"


def size_class(first, last):
    """Of a class of block sizes: "64 to 127 bytes", "64K to under 128K bytes"."""
    if first is None or last is None:
        return "unknown size"
    if first == last:
        return f"{first} byte{'' if first == 1 else 's'}"
    return f"{first} to {last} bytes" if last < 1024 else f"{size(first)} to under {size(last + 1)} bytes"


def unit_for(most_ns):
    """(how many ns it has, its name) of the unit in which the largest time is best written."""
    return next((unit for unit in reversed(TIMES) if most_ns >= unit[0]), TIMES[0])


def significant(value):
    """Three digits, more only before the point: 0.0123, 1.23, 12.3, 1234."""
    if value == 0:
        return "0"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def time(ns):
    scale, name = unit_for(ns)
    return f"{significant(ns / scale)} {name}"


def share(part, whole):
    return f"{100 * part / whole:.0f} %" if whole else "-"


def times(ratio):
    """A ratio of speeds: "1.80"."""
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}"


def count(number, what):
    """count(1, "call") -> "1 call"; count(1200, "call") -> "1,200 calls"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def geometric_mean(ratios):
    return math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
