# SPDX-License-Identifier: BSD-3-Clause
"""The part of the page about what `coco tune` measured."""
import collections

import units
from parts import Part, Section
from stats_plots import Block, candidates_plot

BY_SIZE = "block, bytes"
# Cells that are one plot.
Group = collections.namedtuple("Group", "collective degree buffers")


def _name_of(group):
    degree = "" if group.degree is None else f", {units.count(group.degree, 'edge')} to other nodes"
    return f"{group.collective}{degree}, {group.buffers} buffers"


def _point(candidate):
    return (candidate.median_ns, candidate.low_ns, candidate.high_ns) if candidate.median_ns else None


def _block_of(cell):
    size = units.size(cell.block_bytes)
    return Block(size, f"blocks of {size} bytes", size, cell.chosen, {candidate.name: _point(candidate) for candidate in cell.candidates},
                 {candidate.name: [candidate.samples] for candidate in cell.candidates})


def _choices(cells):
    """Which candidate was chosen where: "eager to 2K bytes, morton to 64K bytes"."""
    last = {}  # by number of the stretch of equal choices
    number = -1
    for at, cell in enumerate(cells):
        if at == 0 or cell.chosen != cells[at - 1].chosen:
            number += 1
        last[number] = cell
    return ", ".join(f"{cell.chosen} to {units.size(cell.block_bytes)} bytes" for cell in last.values())


def _plot(group, cells):
    cells = sorted(cells, key=lambda cell: cell.block_bytes)
    return candidates_plot(_name_of(group), f"Chosen: {_choices(cells)}. ", [_block_of(cell) for cell in cells], BY_SIZE, ["samples"])


def _about(tune):
    about = [f"libcoco {tune.libcoco} with {tune.mpi} on {tune.machine}, {tune.date}: {units.count(tune.ranks, 'rank')}, "
             f"{units.count(tune.nodes, 'node')} of {units.count(tune.ranks_per_node, 'rank')} in {units.count(tune.domains, 'NUMA domain')}{', more ranks than CPUs' if tune.crowded else ''}."]
    if not tune.is_complete:
        about.append("The measurement was interrupted, or its time was too short: this is what had been measured until then.")
    return about


def section(name, tune):
    groups = collections.defaultdict(list)
    for cell in tune.cells:
        if any(_point(candidate) for candidate in cell.candidates):
            groups[Group(cell.collective, cell.degree, cell.buffers)].append(cell)
    if not groups:
        return Section(f"coco tune: {name}", [*_about(tune), "Nothing was measured."], [])
    says = ["A point is the median of a candidate's samples, its bar reaches from the lower to the upper quartile: half of the samples lie "
            "there. The candidate with the ring was chosen, and is what the policy file says; where several are about as fast, that is "
            "the one that makes for the fewest rules. mpi is the MPI library's own function. Warm buffers are in the caches as "
            "the call before left them; cold ones were flushed from all caches and written by their own rank before each call."]
    order = sorted(groups, key=lambda group: (group.collective, group.degree or 0, group.buffers != "warm"))
    return Section(f"coco tune: {name}", _about(tune), [Part("Candidates by block size", says, [_plot(group, groups[group]) for group in order])])
