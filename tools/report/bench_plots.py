# SPDX-License-Identifier: BSD-3-Clause
"""The part of the page about what scripts/bench and its programs measured."""
import collections
import re

import drawing
import units
from parts import Part, Plot, Section, Table

MPI_NAMES = {"mpich": "MPICH", "openmpi": "Open MPI"}
BY_SIZE = "block, bytes"
FASTER = "times as fast as the MPI library"
# Tables that are one plot, each a line in it. place: what they have in common besides.
Group = collections.namedtuple("Group", "mpi collective place")
SAYS = ("Each point compares MPI_X, as a program calls it under libcoco, with the MPI library's own function, measured in turns in one "
        "process. Above 1 libcoco is faster. The mean over the sizes is the geometric mean.")


def place_of(table):
    """"4 hosts x 2 ranks", "8 ranks" """
    hosts = re.match(r"(\d+) hosts, (\d+) ranks a host$", table.hosts)
    return f"{hosts.group(1)} hosts x {units.count(int(hosts.group(2)), 'rank')}" if hosts else units.count(table.ranks, "rank")


def mpi_name(mpi):
    return MPI_NAMES.get(mpi, mpi)


def _group_of(table):
    """Neighbours have a line for each graph, the others one for each number of ranks."""
    return Group(table.mpi, table.collective, place_of(table) if table.graph else "")


def _line_of(table):
    return table.graph or place_of(table)


def lines_of(tables):
    """(block sizes, ratios by line): for each line a ratio for each size, None where there is none."""
    sizes = sorted({row.block_bytes for table in tables for row in table.rows})
    lines = {}
    for name, table in zip(_names_of(tables), tables):
        ratios = {row.block_bytes: row.ratio for row in table.rows}
        lines[name] = [ratios.get(size) for size in sizes]
    return sizes, lines


def _names_of(tables):
    """One of its own for each table, also where a file holds several measurements of the same."""
    seen = collections.Counter()
    for table in tables:
        name = _line_of(table)
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}, measurement {seen[name]}"


def _sentence_of(name, sizes, line):
    known = [(ratio, size) for size, ratio in zip(sizes, line) if ratio is not None]
    least, least_at = min(known)
    mean = units.geometric_mean([ratio for ratio, _ in known])
    return f"{name}: {units.times(mean)} times as fast, at least {units.times(least)} (blocks of {units.size(least_at)} bytes)."


def _title_of(group):
    return ", ".join(word for word in (group.collective, mpi_name(group.mpi), group.place) if word)


def plot_of(group, tables):
    sizes, lines = lines_of(tables)
    return Plot(title=_title_of(group), says=" ".join(_sentence_of(name, sizes, line) for name, line in lines.items()),
                drawn=drawing.ratios([units.size(size) for size in sizes], lines, FASTER, BY_SIZE),
                table=Table(["", "block", "MPI_X", "MPI library", "times as fast"],
                            [[name, units.size(row.block_bytes), units.time(1e3 * row.ours_us), units.time(1e3 * row.library_us), units.times(row.ratio)]
                             for name, table in zip(_names_of(tables), tables) for row in table.rows]))


def grouped(tables):
    """Tables by Group, in the order of the file."""
    groups = collections.defaultdict(list)
    for table in tables:
        groups[_group_of(table)].append(table)
    return groups


def _programs(programs):
    both = [program for program in programs if program.without_us and program.with_us]
    if not both:
        return []
    rows = [[mpi_name(program.mpi), program.title, units.time(1e3 * program.without_us), units.time(1e3 * program.with_us),
             units.times(program.without_us / program.with_us)] for program in both]
    return [Part("Programs without and with libcoco", ["Time of one iteration of a program that exchanges with its neighbours."],
                 table=Table(["MPI", "program", "without", "with", "times as fast"], rows))]


def section(name, bench):
    speeds = Part("Speed by block size", [SAYS], [plot_of(group, tables) for group, tables in grouped(bench.tables).items()])
    return Section(f"Benchmark: {name}", bench.about, [speeds, *_programs(bench.programs)])
