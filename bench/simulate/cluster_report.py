# SPDX-License-Identifier: BSD-3-Clause
"""Tables and plots of clusters of namespaces, of bench/simulate/run: simulated ratios beside those measured for real."""
import math
import pathlib
import re

import report
import sets

MEASURED = pathlib.Path(__file__).resolve().parents[1] / "results" / "cluster-2-cores-epyc.txt"


def measured(flavour):
    """What scripts/bench --cluster wrote. Returns: microseconds of MPI_X and of the library, by hosts, ranks of a host,
    collective and bytes."""
    found, now, form, collective = {}, "", (), ""
    for line in MEASURED.read_text().splitlines():
        if line.startswith("== "):
            now = line[3:]
        elif match := re.fullmatch(r"(\d+) hosts, (\d+) ranks a host", line):
            form = tuple(map(int, match.groups()))
        elif match := re.fullmatch(r"(\w+), \d+ ranks", line):
            collective = match[1]
        elif now == flavour and re.fullmatch(r" *\d+( +[\d.]+){3}", line):
            size, ours, theirs, _ = line.split()
            found[(*form, collective, int(size))] = float(ours), float(theirs)
    return found


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


class Comparison:
    """One machine and collective: by size, what was simulated and what was measured."""

    def __init__(self, case, rows, real):
        self.case = case
        self.sizes = {}
        rows = [r for r in rows if case.is_of(r)]
        theirs = {int(r["bytes"]): float(r["us"]) for r in rows if r["contender"] == "mpi"}
        for r in rows:
            size, key = int(r["bytes"]), (case.hosts, case.per_host, case.collective, int(r["bytes"]))
            if r["contender"].startswith("default=") and size in theirs and key in real:
                chosen = r["contender"].removeprefix("default=")
                # What is left to the library is the library.
                ours = theirs[size] if chosen == "mpi" else float(r["us"])
                self.sizes[size] = chosen, (ours, theirs[size]), real[key]

    def ratios(self):
        """Of what is not left to the library. Returns: simulated, measured."""
        for chosen, (ours, theirs), (real_ours, real_theirs) in self.sizes.values():
            if chosen != "mpi":
                yield theirs / ours, real_theirs / real_ours

    def lines(self):
        yield f"== {self.case.what}"
        for size, (chosen, (ours, theirs), (real_ours, real_theirs)) in self.sizes.items():
            simulated, real = theirs / ours, real_theirs / real_ours
            yield (f"{size:7}  {chosen:24} {ours:9.1f} {theirs:9.1f} {simulated:6.2f}  {real_ours:9.1f} "
                   f"{real_theirs:9.1f} {real:6.2f}  {ours / real_ours:6.2f} {theirs / real_theirs:6.2f}")

    def summary(self):
        """Geometric means: of times over all sizes, of ratios over those that are not left to the library."""
        sizes, pairs = self.sizes.values(), list(self.ratios())
        ours, theirs = (mean([times[i] / real[i] for _, times, real in sizes]) for i in (0, 1))
        case = self.case
        line = f"{case.hosts} x {case.per_host} {case.collective:10} {ours:8.2f} {theirs:8.2f} {len(pairs):8}"
        if pairs:
            simulated, real = (mean([pair[i] for pair in pairs]) for i in (0, 1))
            off = mean([max(s / r, r / s) for s, r in pairs])
            line += f" {simulated:10.2f} {real:10.2f} {off:8.2f}"
        return line


def comparisons(name, rows):
    real = measured(sets.CLUSTERS[name].flavour)
    return [Comparison(case, rows, real) for case in sets.clusters(name)]


def text(name, rows, head):
    lines = [f"# {line}" for line in head]
    lines += [f"# measured: bench/results/{MEASURED.name}",
              "# by bytes: what the built-in rules choose; simulated: its microseconds, those of SMPI's selection "
              f"{sets.CLUSTERS[name].selection}, ratio;", "# measured: MPI_X, the library, ratio; simulated / measured, of ours "
              "and of theirs", ""]
    all_of_them = comparisons(name, rows)
    for comparison in all_of_them:
        lines += [*comparison.lines(), ""]
    lines += ["== geometric means: simulated / measured time, of ours and of the library; sizes not left to the library; their",
              "== ratio library / ours simulated, and measured; by what factor that is off, either way",
              " " * 16 + "    ours   theirs    sizes  simulated   measured      off",
              *(comparison.summary() for comparison in all_of_them), ""]
    return "\n".join(lines)


def plot(name, rows, path):
    pyplot = report.pyplot_or_none()
    if pyplot is None:
        return
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for comparison in comparisons(name, rows):
        points = list(comparison.ratios())
        if points:
            case = comparison.case
            axes.plot(*zip(*points), "o", label=f"{case.collective} {case.hosts} x {case.per_host}", markersize=4)
    axes.plot([0.3, 12], [0.3, 12], color="black", linewidth=1)
    axes.set(yscale="log", xlabel="simulated ratio", ylabel="measured ratio", title=f"{name}: library / libcoco")
    report.save(pyplot, figure, axes, path)


def write(name, rows, head, folder):
    (folder / f"{name}.txt").write_text(text(name, rows, head))
    plot(name, rows, folder / f"{name}.png")
