# SPDX-License-Identifier: BSD-3-Clause
"""The part of the page that compares two runs of a program, by what COCO_STATS=FILE.json counted in each."""
from typing import NamedTuple

import drawing
import stats_plots
import units
from parts import LINES_MOST, Part, Plot, Section, Table, most_important
from stats_plots import Kind, by_size, grouped, kind_of, name_of, names_of, parted, size_of, spent, tick_of

NAMES = ("first run", "second run")


def _mean_ns(calls):
    made = sum(call.calls for call in calls)
    return spent(calls) / made if made else 0


def _totals_sentence(runs):
    totals = [spent(run.calls) for run in runs]
    says = f"In all {units.time(totals[0])} in the first run and {units.time(totals[1])} in the second"
    made = [{kind: sum(call.calls for call in calls) for kind, calls in grouped(run.calls, kind_of).items()} for run in runs]
    if made[0] != made[1]:
        return f"{says}; but the two did not make equally many calls."
    return f"{says}, {units.times(totals[0] / totals[1])} times as fast." if all(totals) else f"{says}."


def _totals_plot(runs, kinds):
    by_kind = [grouped(run.calls, kind_of) for run in runs]
    labels, bars, rows = [], [], []
    for kind in kinds:
        for name, groups in zip(NAMES, by_kind):
            calls = groups.get(kind, [])
            labels.append(f"{name_of(kind)}: {name}")
            bars.append(parted(calls))
            rows.append([*kind, name, sum(call.calls for call in calls), units.time(spent(calls))])
    return Plot(title="Time in calls, by collective",
                says=_totals_sentence(runs),
                drawn=drawing.lying_bars(labels, bars, "time in calls"),
                table=Table(["collective", "ranks", "run", "calls", "time"], rows))


class Cell(NamedTuple):
    """The calls of a kind and size that both runs made: what they spent in the first, and the mean time of one in each."""
    kind: Kind
    size: tuple
    spent_ns: int
    before_ns: float
    after_ns: float

    @property
    def ratio(self):
        return self.before_ns / self.after_ns


def _cells_of(runs, kinds):
    first, second = (grouped(run.calls, lambda call: (kind_of(call), size_of(call))) for run in runs)
    cells = [Cell(*key, spent(calls), _mean_ns(calls), _mean_ns(second[key])) for key, calls in first.items() if key in second]
    return [cell for cell in cells if cell.kind in kinds and cell.before_ns and cell.after_ns]


def _ratios_plot(cells, kinds):
    order = sorted({cell.size for cell in cells}, key=by_size)
    ratio_at = {(cell.kind, cell.size): cell.ratio for cell in cells}
    lines = {name: [ratio_at.get((kind, size)) for size in order]
             for kind, name in names_of([kind for kind in kinds if kind in {cell.kind for cell in cells}]).items()}
    most = max(cells, key=lambda cell: cell.spent_ns)
    says = (f"Where the first run spent most, in {name_of(most.kind)}, blocks of {units.size_class(*most.size)}, a call took "
            f"{units.time(most.before_ns)} and takes {units.time(most.after_ns)} in the second: {units.times(most.ratio)} times as fast.")
    return Plot(title="Speed of a call in the second run against the first, by block size", says=says,
                drawn=drawing.ratios([tick_of(size) for size in order], lines, "times as fast as in the first run", stats_plots.BY_CLASS),
                table=Table(["collective", *(units.size_class(*size) for size in order)],
                            [[name, *("" if ratio is None else units.times(ratio) for ratio in line)] for name, line in lines.items()]))


def section(names, runs):
    """names, runs: two each."""
    title = f"{names[1]} compared with {names[0]}"
    about = [f"The first run is {names[0]}, the second {names[1]}."]
    everything = [call for run in runs for call in run.calls]
    if not everything:
        return Section(title, [*about, "Neither made a call of these collectives."], [])
    kinds = grouped(everything, kind_of)
    shown, note = most_important(kinds, lambda kind: spent(kinds[kind]), LINES_MOST)
    plots = [_totals_plot(runs, shown)]
    cells = _cells_of(runs, shown)
    if cells:
        plots.append(_ratios_plot(cells, shown))
    says = ["A call's time is the mean over all calls of a collective and size class, of the rank that spent most. "
            "Above 1 the second run is faster.", *note]
    return Section(title, about, [Part("Both runs", says, plots)])
