# SPDX-License-Identifier: BSD-3-Clause
"""Tables and plots of bench/simulate/run."""
import math

import sets


class Times:
    """Microseconds by contender, copies and size. Where copies cost nothing is all that is known, that is it."""

    def __init__(self, case, rows):
        self.case = case
        self.of = {(r["contender"], r["copies"], int(r["bytes"])): float(r["us"]) for r in rows}
        self.mine = [c for c in case.contenders if "+" not in c.name and c.name != "mpi"]

    def get(self, label, copies, size):
        if label == sets.BEST:
            times = [self.get(c.label, copies, size) for c in self.mine]
            return min((t for t in times if t), default=None)
        return self.of.get((label, copies, size)) or self.of.get((label, "free", size) if copies == "10" and
                                                                  not self.charged(label) else None)

    def charged(self, label):
        return any(c.label == label and "10" in c.copies for c in self.case.contenders)

    def best_name(self, copies, size):
        known = [(self.get(c.label, copies, size), c.label) for c in self.mine]
        return min((k for k in known if k[0]), default=(None, "-"))[1]

    def ratio(self, ratio, copies):
        """Returns: geometric mean, number of sizes."""
        logs = []
        for size in self.case.sizes:
            mine, theirs = self.get(ratio.ours, copies, size), self.get(ratio.rival, copies, size)
            if ratio.least <= size < ratio.below and mine and theirs:
                logs.append(math.log(theirs / mine))
        return (math.exp(sum(logs) / len(logs)), len(logs)) if logs else (None, 0)


def table(times, copies):
    labels = [c.label for c in times.case.contenders]
    numbers = [f"[{i}]" for i in range(1, len(labels) + 1)]
    lines = ["bytes".rjust(7) + "".join(n.rjust(9) for n in numbers) + "  best of ours"]
    for size in times.case.sizes:
        cells = [times.get(label, copies, size) for label in labels]
        lines.append(f"{size:7}" + "".join((f"{c:9.1f}" if c else "-".rjust(9)) for c in cells) +
                     f"  {times.best_name(copies, size)}")
    return lines


def text(case, rows, head):
    times = Times(case, rows)
    lines = [f"# {line}" for line in head]
    lines += ["# microseconds of simulated time, from a common start to the end of the slowest rank", ""]
    lines += [f"[{i}] {c.label}" for i, c in enumerate(case.contenders, 1)]
    for copies, meaning in (("10", "copies on a node cost 10 GB/s and 5 ns each, elements 3 ns; within SMPI's functions nothing"),
                            ("free", "copies cost nothing for anybody")):
        lines += ["", f"== {meaning}", *table(times, copies)]
        for r in case.ratios:
            mean, count = times.ratio(r, copies)
            if count:
                reached = "reached" if mean >= r.target else "not reached"
                wanted = f"; asked for {r.target}: {reached}" if r.target != 1 else ""
                lines.append(f"{r.rival} / {r.ours}, {count} sizes below {r.below}: {mean:.2f}{wanted}")
    moved = sum(r["moved"] == "yes" for r in rows)
    lines += ["", f"blocks really moved (alltoallv: followed) and found right in {moved} of {len(rows)} measurements; "
              "times alone in the others"]
    return "\n".join(lines) + "\n"


def pyplot_or_none():
    try:
        import matplotlib
    except ImportError:
        print("  no plot: no matplotlib here (Debian: python3-matplotlib)")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    return pyplot


def save(pyplot, figure, axes, path):
    axes.set_xscale("log", base=2)
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=100, metadata={"Software": None})
    pyplot.close(figure)


def plot(case, rows, path):
    pyplot = pyplot_or_none()
    if pyplot is None:
        return
    times = Times(case, rows)
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for c in case.contenders:
        points = [(s, times.get(c.label, "10", s)) for s in case.sizes]
        points = [p for p in points if p[1]]
        if points:
            style = "o-" if c in times.mine else "x--"
            axes.plot(*zip(*points), style, label=c.label, markersize=4, linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="bytes a block", ylabel="simulated microseconds", title=case.what)
    save(pyplot, figure, axes, path)


class Default:
    """What the built-in rules chose on one machine, against the best of SMPI's selections."""

    def __init__(self, case, rows):
        self.case = case
        rows = [r for r in rows if case.is_of(r)]
        self.chosen = {int(r["bytes"]): r["contender"].removeprefix("default=") for r in rows
                       if r["contender"].startswith("default=")}
        self.us = {(r["copies"], int(r["bytes"])): float(r["us"]) for r in rows if r["contender"].startswith("default=")}
        self.rivals = {}
        for r in rows:
            # At 16 x 16 mvapich2's allgather of SMPI's returns without a message.
            if r["contender"].startswith("SMPI") and float(r["us"]) > 0:
                self.rivals.setdefault(int(r["bytes"]), []).append((float(r["us"]), r["contender"]))

    def ratio(self, size, copies):
        if size not in self.rivals or (copies, size) not in self.us:
            return None
        return min(self.rivals[size])[0] / self.us[copies, size]

    def lines(self):
        yield f"== {self.case.what}"
        for size in self.case.sizes:
            chosen = self.chosen.get(size, "-")
            if self.ratio(size, "10") is None:
                yield f"{size:7}  {chosen}"
                continue
            best, who = min(self.rivals[size])
            yield (f"{size:7}  {chosen:28} {self.us['10', size]:9.1f} {best:9.1f}  {who:14} {self.ratio(size, '10'):7.2f}"
                   f" {self.ratio(size, 'free'):7.2f}")


def default_text(cases, rows, head):
    lines = [*(f"# {line}" for line in head), "# by bytes: what the built-in rules choose, its microseconds (copies "
             "cost), those of the best of SMPI's", "# selections (its copies cost nothing) and which that is; the "
             "ratio; the ratio where nobody's copies cost", "# `mpi`, the library's own function, has ratio 1 to it", ""]
    for case in cases:
        lines += [*Default(case, rows).lines(), ""]
    return "\n".join(lines)


def default_plot(cases, rows, path):
    pyplot = pyplot_or_none()
    if pyplot is None:
        return
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for case in cases:
        of = Default(case, rows)
        points = [(s, of.ratio(s, "10")) for s in case.sizes if of.ratio(s, "10")]
        if points:
            axes.plot(*zip(*points), "o-", label=f"{case.collective} {case.hosts} x {case.per_host}", markersize=4,
                      linewidth=1)
    axes.axhline(1, color="black", linewidth=1)
    axes.set(yscale="log", xlabel="bytes a block", ylabel="best of SMPI's selections / built-in rules",
             title="built-in rules, where they do not leave calls to MPI")
    save(pyplot, figure, axes, path)


def write(case, rows, head, folder):
    if case.name == sets.DEFAULT:
        cases = list(sets.defaults())
        (folder / f"{case.name}.txt").write_text(default_text(cases, rows, head))
        return default_plot(cases, rows, folder / f"{case.name}.png")
    (folder / f"{case.name}.txt").write_text(text(case, rows, head))
    plot(case, rows, folder / f"{case.name}.png")
