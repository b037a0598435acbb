# SPDX-License-Identifier: BSD-3-Clause
"""Tables and plots of neighbourhood collectives, of bench/simulate/run."""
import report
from neighbor_sets import COLLECTIVES, COMPUTED, DIRECT

SETUP_COLUMNS = ["collective", "hosts", "per_host", "contender", "rounds", "letters_per_rank", "letter_bytes_per_rank",
                 "network_us", "cpu_us", "schedule_us"]


class Times:
    def __init__(self, case, rows):
        self.case = case
        self.rows = {(*r["collective"].split("@"), r["contender"], r["copies"], int(r["bytes"])): r for r in rows}

    def us(self, collective, graph, contender, copies, size):
        row = self.rows.get((collective, graph, contender, copies, size))
        return float(row["us"]) if row else None

    def messages(self, collective, graph, contender, size):
        row = self.rows.get((collective, graph, contender, "10", size))
        return float(row["messages_per_rank"]) if row else None

    def direct(self, graph, size):
        """Returns: microseconds, and whether they were simulated."""
        simulated = self.us(COLLECTIVES[0], graph, DIRECT, "free", size)
        return (simulated, True) if simulated else (self.us(COLLECTIVES[0], graph, COMPUTED, "10", size), False)

    def saved(self, collective, graph, contender, copies, size):
        """Returns: by how much less time it takes than direct sends: 0.5 is half of it."""
        mine, direct = self.us(collective, graph, contender, copies, size), self.direct(graph, size)[0]
        return 1 - mine / direct if mine and direct else None


def percent(share):
    return "-" if share is None else f"{100 * share:.0f} %"


def small_table(times, collective, copies):
    case = times.case
    lines = ["graph".ljust(14) + "degree".rjust(7) + "direct".rjust(10) +
             "".join(f"[{i}]".rjust(9) + "less".rjust(7) + "msgs".rjust(7) for i in range(1, len(case.ours) + 1))]
    for g in case.graphs:
        direct, simulated = times.direct(g.name, 4)
        if not direct:
            continue
        line = f"{g.name:14}{g.degree:7}{direct:9.1f}{' ' if simulated else '~'}"
        for c in case.ours:
            us, messages = times.us(collective, g.name, c, copies, 4), times.messages(collective, g.name, c, 4)
            line += (f"{us:9.1f}" if us else "-".rjust(9)) + percent(times.saved(collective, g.name, c, copies, 4)).rjust(7)
            line += (f"{messages:7.1f}" if messages else "-".rjust(7))
        lines.append(line)
    return lines


def size_table(times, collective, copies):
    lines = ["graph".ljust(14) + "bytes".rjust(7) + "direct".rjust(10) +
             "".join(f"[{i}]".rjust(10) for i in range(1, len(times.case.ours) + 1))]
    for g in times.case.graphs:
        for size in g.sizes if len(g.sizes) > 1 else ():
            direct = times.direct(g.name, size)[0]
            if direct:
                shares = (times.us(collective, g.name, c, copies, size) for c in times.case.ours)
                lines.append(f"{g.name:14}{size:7}{direct:10.1f}" + "".join((f"{us:10.1f}" if us else "-".rjust(10)) for us in shares))
    return lines


def asked_lines(times):
    """At 4 B: what was asked, and in how many graphs it was reached."""
    for contender in times.case.ours:
        for collective in COLLECTIVES:
            for copies, meaning in (("10", "copies cost"), ("free", "copies free")):
                got = [(g, times.saved(collective, g.name, contender, copies, 4)) for g in times.case.graphs]
                got = [(g, saved) for g, saved in got if saved is not None and g.asked]
                if got:
                    asked = times.case.asked_of
                    reached = [g.name for g, saved in got if saved >= asked.get(contender, g.asked)]
                    least, worst = min((saved, g.name) for g, saved in got)
                    wanted = percent(asked[contender]) if contender in asked else "50 % (random), 43 % (moore)"
                    yield (f"{contender}, {collective.removeprefix('neighbor_')}, {meaning}: asked for {wanted} less: reached "
                           f"in {len(reached)} of {len(got)} graphs; least {percent(least)} ({worst})")


def setup_table(setups):
    yield ("graph".ljust(14) + "contender".ljust(32) + "rounds".rjust(7) + "letters".rjust(9) + "bytes".rjust(10) +
           "network us".rjust(12) + "CPU us".rjust(10) + "schedule us".rjust(13))
    seen = set()
    for s in setups:
        collective, graph = s["collective"].split("@")
        personal = " (alltoall)" if collective == COLLECTIVES[1] and s["contender"].startswith("aggregate") else ""
        key = (graph, s["contender"] + personal)
        if key not in seen:
            seen.add(key)
            yield (f"{graph:14}{key[1]:32}{s['rounds']:>7}{s['letters_per_rank']:>9}{s['letter_bytes_per_rank']:>10}"
                   f"{float(s['network_us']):12.0f}{float(s['cpu_us']):10.0f}{float(s['schedule_us']):13.0f}")


def text(case, rows, setups, head):
    times = Times(case, rows)
    lines = [f"# {line}" for line in head]
    lines += ["# microseconds of simulated time, from a common start to the end of the slowest rank; less: how much less than direct",
              "# sends take (MPICH, Open MPI: a message for each edge, also within nodes); msgs: messages a rank; ~: computed, not",
              f"# simulated ({case.machine.small_message}, of the slowest rank)", ""]
    lines += [f"[{i}] {c}" for i, c in enumerate(case.ours, 1)]
    for collective in COLLECTIVES:
        for copies, meaning in (("10", "copies on a node cost 10 GB/s and 5 ns each; within direct sends nothing"),
                                ("free", "copies cost nothing for anybody")):
            lines += ["", f"== {collective}, 4 B; {meaning}", *small_table(times, collective, copies)]
    for collective in COLLECTIVES:
        lines += ["", f"== {collective}, by size, us; copies cost", *size_table(times, collective, "10")]
    lines += ["", "== asked and reached, 4 B", *asked_lines(times), "",
              "== set-up, once for a graph (paper: phase 1; schedule: phase 2). Letters and their bytes: a rank's mean. Network: computed,",
              "== the slowest rank of each round (an alltoall of lengths, the letters, an allreduce). CPU: a rank's mean, real time here",
              *setup_table(setups)]
    moved = sum(r["moved"] == "yes" for r in rows)
    lines += ["", f"blocks really moved and found right in {moved} of {len(rows)} measurements; times alone in the others"]
    return "\n".join(lines) + "\n"


def plot(case, rows, path):
    pyplot = report.pyplot_or_none()
    if pyplot is None:
        return
    times = Times(case, rows)
    figure, panels = pyplot.subplots(1, 2, figsize=(12, 4.5), sharey=True)
    for axes, collective in zip(panels, COLLECTIVES):
        for contender in case.ours:
            points = [(g.name, times.saved(collective, g.name, contender, "10", 4)) for g in case.graphs]
            points = [(name, 100 * saved) for name, saved in points if saved is not None]
            if points:
                axes.plot(*zip(*points), "o-", label=contender, markersize=4, linewidth=1)
        axes.axhline(0, color="black", linewidth=1)
        axes.tick_params(axis="x", rotation=60)
        axes.set(title=f"{collective}, 4 B", ylabel="% less time than direct sends", ylim=(-60, 100))
        axes.grid(True, alpha=0.3)
        axes.legend(fontsize=7)
    figure.suptitle(case.what)
    figure.tight_layout()
    figure.savefig(path, dpi=100, metadata={"Software": None})
    pyplot.close(figure)


def write(case, rows, setups, head, folder):
    (folder / f"{case.name}.txt").write_text(text(case, rows, setups, head))
    plot(case, rows, folder / f"{case.name}.png")
