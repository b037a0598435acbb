# SPDX-License-Identifier: BSD-3-Clause
"""Reads what scripts/bench, bench/collective and bench/neighbor print; of these two also with --csv."""
import re
from typing import NamedTuple, Optional

from checks import Unfit, printable


class Table(NamedTuple):
    """One collective on one graph (neighbours) or none, measured on some ranks."""
    mpi: str         # "" if the file does not say
    hosts: str       # likewise: "4 hosts, 2 ranks a host"
    collective: str  # as coco names it: neighbor_alltoall
    graph: str       # "" if these are no neighbours
    ranks: int
    rows: list       # of Row


class Row(NamedTuple):
    block_bytes: int
    ours_us: float
    library_us: float

    @property
    def ratio(self):
        """Above 1: faster than the MPI library. The ratio that is printed has fewer digits."""
        return self.library_us / self.ours_us


class Program(NamedTuple):
    """A program that was timed without and with libcoco; None where one of the two is missing."""
    mpi: str
    title: str
    without_us: Optional[float]
    with_us: Optional[float]


class Bench(NamedTuple):
    about: list  # the lines of the file that tell machine and commit
    tables: list
    programs: list


TITLE = re.compile(r"(\w+)(?: on (\S+))?, (\d{1,9}) ranks(?:, .*)?$")
CSV = re.compile(r"(\w+)(?:,([^,\s]+))?,(\d{1,9}),(\d{1,18}),(\d{1,12}\.\d+),(\d{1,12}\.\d+),\d+\.\d+\s*$")
HOSTS = re.compile(r"\d+ hosts, \d+ ranks a host$")
HEAD = re.compile(r"\s*bytes\s+MPI_X us\s+library us\s+ratio\s*$")
ROW = re.compile(r"\s*(\d{1,18})\s+(\d{1,12}\.\d+)\s+(\d{1,12}\.\d+)\s+\d+\.\d+\s*$")
ITERATION = re.compile(r"\s+an iteration (\d{1,12}\.\d+) us, ")


class _Reader:
    def __init__(self):
        self.about, self.tables, self.programs = [], [], []
        self.mpi = self.hosts = self.title = ""
        self.table_rows = None  # of the table whose rows come
        self.with_libcoco = False

    def take(self, line):
        if self._mark(line):
            self.table_rows = None
        elif HEAD.match(line) and (title := TITLE.match(self.title)):  # which was the line before
            self._begin(*title.groups())
        elif self.table_rows is not None and (row := ROW.match(line)):
            self._add(*row.groups())
        elif row := CSV.match(line):
            self._add_csv(*row.groups())
        elif figure := ITERATION.match(line):
            self._note(self.title, float(figure.group(1)))
        else:
            self.title = line.strip()

    def _mark(self, line):
        """Whether a table ends here."""
        if line.startswith("#"):
            self.about.append(line.lstrip("# "))
        elif line.startswith("== "):
            self.mpi, self.hosts = line[3:], ""
        elif HOSTS.match(line):
            self.hosts = line
        elif line in ("without libcoco", "with libcoco"):
            self.with_libcoco = line == "with libcoco"
        else:
            return False
        return True

    def _begin(self, collective, graph, ranks):
        self.table_rows = []
        self.tables.append(Table(self.mpi, self.hosts, collective, graph or "", int(ranks), self.table_rows))

    def _add(self, block_bytes, ours_us, library_us):
        """A time of nothing compares with nothing."""
        row = Row(int(block_bytes), float(ours_us), float(library_us))
        if row.ours_us and row.library_us:
            self.table_rows.append(row)

    def _add_csv(self, collective, graph, ranks, *figures):
        name = f"neighbor_{collective}" if graph else collective  # as the tables have it
        last = self.tables[-1] if self.table_rows is not None else None
        if last is None or (last.collective, last.graph, last.ranks) != (name, graph or "", int(ranks)):
            self._begin(name, graph, ranks)
        self._add(*figures)

    def _note(self, title, us):
        if not self.with_libcoco:
            self.programs.append(Program(self.mpi, title, us, None))
            return
        for at, program in enumerate(self.programs):
            if (program.mpi, program.title, program.with_us) == (self.mpi, title, None):
                self.programs[at] = program._replace(with_us=us)
                return
        self.programs.append(Program(self.mpi, title, None, us))


def read(text):
    reader = _Reader()
    for line in text.splitlines():
        reader.take(printable(line))
    tables = [table for table in reader.tables if table.rows]
    if not tables:
        raise Unfit("neither JSON nor results of scripts/bench, bench/collective or bench/neighbor")
    return Bench(reader.about, tables, reader.programs)
