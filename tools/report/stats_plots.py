# SPDX-License-Identifier: BSD-3-Clause
"""The part of the page about one run of a program: what COCO_STATS=FILE.json counted."""
import collections

import drawing
import units
from parts import LINES_MOST, Advice, Part, Plot, Section, Table, most_important

BY_CLASS = "block size, bytes (from this to under twice this)"
# As docs/stats.md has it.
WAITING_MEANS = "Much waiting and little copying means that ranks arrive at different times: no algorithm helps there."

# Calls of one function on communicators of one size.
Kind = collections.namedtuple("Kind", "function comm_ranks")


def kind_of(call):
    return Kind(call.function, call.comm_ranks)


def name_of(kind):
    return f"{kind.function}, {units.count(kind.comm_ranks, 'rank')}"


def names_of(kinds):
    """In short: without the number of ranks where that is always the same."""
    if len({kind.comm_ranks for kind in kinds}) == 1:
        return {kind: kind.function for kind in kinds}
    return {kind: name_of(kind) for kind in kinds}


def size_of(call):
    return call.block_first, call.block_last


def by_size(size):
    """A key to sort by."""
    return -1 if size[0] is None else size[0]


def tick_of(size):
    return "unknown" if size[0] is None else units.size(size[0])


def spent(calls):
    return sum(call.total_ns for call in calls)


def grouped(calls, key):
    groups = collections.defaultdict(list)
    for call in calls:
        groups[key(call)].append(call)
    return groups


def parted(calls):
    """The time of calls by what it went to, in ns."""
    ours = [call for call in calls if call.handed_back is None]
    waiting = sum(min(call.wait_ns or 0, call.total_ns) for call in ours)
    return {"waiting": waiting, "copying": spent(ours) - waiting, "in the MPI library": spent(calls) - spent(ours)}


def _parted_row(calls):
    times = parted(calls)
    return [units.time(spent(calls)), *(units.time(times[part]) for part in drawing.PARTS)]


PARTED_COLUMNS = ["total", *drawing.PARTS]


# --- where the time goes ---

def _overview(kinds, calls):
    shown, _ = most_important(kinds, lambda kind: spent(kinds[kind]))
    first = shown[0]
    return Plot(title="Time by collective",
                says=f"{first.function} on {units.count(first.comm_ranks, 'rank')} took most: {units.time(spent(kinds[first]))}, "
                     f"{units.share(spent(kinds[first]), spent(calls))} of all.",
                drawn=drawing.lying_bars([name_of(kind) for kind in shown], [parted(kinds[kind]) for kind in shown], "time in calls"),
                table=Table(["collective", "ranks", *PARTED_COLUMNS],
                            [[*kind, *_parted_row(kinds[kind])] for kind in sorted(kinds, key=lambda kind: -spent(kinds[kind]))]))


def _sizes_plot(kind, calls):
    sizes = grouped(calls, size_of)
    order = sorted(sizes, key=by_size)
    most = max(order, key=lambda size: spent(sizes[size]))
    made = units.count(sum(call.calls for call in sizes[most]), "call")
    return Plot(title=f"{name_of(kind)}: time by block size",
                says=f"Blocks of {units.size_class(*most)} took most: {units.time(spent(sizes[most]))} in {made}.",
                drawn=drawing.standing_bars([tick_of(size) for size in order], [parted(sizes[size]) for size in order],
                                            "time in calls", BY_CLASS),
                table=Table(["block", "algorithm", "handed back", "calls", "median", *PARTED_COLUMNS],
                            [[units.size_class(*size), call.algorithm, call.handed_back or "", call.calls, units.time(call.median_ns),
                              *_parted_row([call])] for size in order for call in sizes[size]]))


def _where_time_goes(kinds, calls):
    shown, note = most_important(kinds, lambda kind: spent(kinds[kind]))
    says = ["All times are those of the rank that spent most. A call that libcoco ran is waiting for other ranks, and copying: "
            "all the rest. How a call spends its time in the MPI library is not known."]
    return Part("Where the time goes", says + note, [_overview(kinds, calls), *(_sizes_plot(kind, kinds[kind]) for kind in shown)])


# --- waiting against copying ---

def _waiting_share(calls):
    times = parted(calls)
    ours = times["waiting"] + times["copying"]
    return 100 * times["waiting"] / ours if ours else None


def _waiting(kinds, calls):
    ours = {kind: [call for call in kinds[kind] if call.handed_back is None] for kind in kinds}
    ours = {kind: run for kind, run in ours.items() if spent(run)}
    if not ours:
        return Part("Waiting against copying", ["libcoco ran none of the calls, so nothing is known of their waiting."])
    shown, note = most_important(ours, lambda kind: spent(ours[kind]), LINES_MOST)
    order = sorted({size_of(call) for kind in shown for call in ours[kind]}, key=by_size)
    lines = {}
    for kind, name in names_of(shown).items():
        sizes = grouped(ours[kind], size_of)
        lines[name] = [_waiting_share(sizes[size]) if size in sizes else None for size in order]
    most = max(shown, key=lambda kind: parted(ours[kind])["waiting"])
    plot = Plot(title="Share of waiting in the calls that libcoco ran",
                says=f"{name_of(most)}, waited longest: {units.time(parted(ours[most])['waiting'])}, "
                     f"{_waiting_share(ours[most]):.0f} % of its time in libcoco.",
                drawn=drawing.shares([tick_of(size) for size in order], lines, "waiting, % of the time", BY_CLASS),
                table=Table(["collective", *(units.size_class(*size) for size in order)],
                            [[name, *("" if share is None else f"{share:.0f} %" for share in line)] for name, line in lines.items()]))
    return Part("Waiting against copying", [WAITING_MEANS, *note], [plot])


# --- libcoco against the MPI library ---

# The candidates for blocks of one size, which the axis, sentences and the table name. points: by candidate (time, least and
# most of its range) in ns, or None; more: by candidate what stands behind that in the table.
Block = collections.namedtuple("Block", "tick where row chosen points more")


def _gain(block):
    """How many times as fast as the MPI library's function the chosen one is; None if one of them was not measured."""
    library, chosen = block.points.get(drawing.LIBRARY_NAME), block.points.get(block.chosen)
    return library[0] / chosen[0] if library and chosen else None


def _gains_sentence(gains):
    """gains: (where, how many times as fast as the MPI library what was chosen is)"""
    known = [gain for _, gain in gains]
    if not known:
        return "What was chosen and the MPI library's own function were not both measured."
    if len(known) == 1:
        return f"What was chosen is {units.times(known[0])} times as fast as the MPI library's own function."
    (least_at, least), (most_at, most) = min(gains, key=lambda gain: gain[1]), max(gains, key=lambda gain: gain[1])
    return (f"What was chosen is {units.times(units.geometric_mean(known))} times as fast as the MPI library's own function (geometric "
            f"mean): from {units.times(least)} ({least_at}) to {units.times(most)} ({most_at}).")


def candidates_plot(title, says, blocks, by_size, columns):
    """says: what goes before the sentence about gains; columns: the names of Block.more."""
    lines = {name: [block.points.get(name) for block in blocks] for name in dict.fromkeys(name for block in blocks for name in block.points)}
    rows = [[block.row, name, "chosen" if name == block.chosen else "", *(map(units.time, point) if point else ["not tried", "", ""]),
             *block.more[name]] for block in blocks for name, point in block.points.items()]
    return Plot(title=title, says=says + _gains_sentence([(block.where, _gain(block)) for block in blocks if _gain(block)]),
                drawn=drawing.candidates([block.tick for block in blocks], {name: line for name, line in lines.items() if any(line)},
                                         [block.chosen for block in blocks], by_size),
                table=Table(["block", "candidate", "", "time", "from", "to", *columns], rows))


def _point(candidate):
    if not candidate.time_ns:
        return None
    return candidate.time_ns, candidate.low_ns or candidate.time_ns, candidate.high_ns or candidate.time_ns


def _block_of(lesson):
    last = None if lesson.block_last is None else units.size(lesson.block_last)
    where = f"blocks of up to {last} bytes" if last else "blocks of any size"
    return Block(last or "any", where, where, lesson.incumbent, {candidate.name: _point(candidate) for candidate in lesson.candidates},
                 collections.defaultdict(lambda: [lesson.calls, lesson.looks]))


def _lessons_plot(group, lessons):
    function, nodes, ranks_per_node = group
    lessons = sorted(lessons, key=lambda lesson: -1 if lesson.block_last is None else lesson.block_last)
    return candidates_plot(f"{function} on {units.count(nodes, 'node')} of {units.count(ranks_per_node, 'rank')}: candidates", "",
                           [_block_of(lesson) for lesson in lessons], "block size, bytes (over half of this, up to this)", ["calls", "looks"])


def _against_library(stats):
    title = "libcoco against the MPI library"
    measured = [lesson for lesson in stats.learned if any(_point(candidate) for candidate in lesson.candidates)]
    if not measured:
        return Part(title, ["Nothing was learned in this run. Unless COCO_LEARN is read or off, libcoco gives a few of a program's calls to the "
                            "MPI library's own function and to other algorithms, and the report shows how long they took. That takes "
                            "some dozens of calls of one collective, on one communicator and of about one size."])
    groups = collections.defaultdict(list)
    for lesson in measured:
        groups[lesson.function, lesson.nodes, lesson.ranks_per_node].append(lesson)
    spent_ns, looks = sum(lesson.spent_ns for lesson in measured), sum(lesson.looks for lesson in measured)
    says = ["While the program ran, a few calls went to other candidates than the one that had all the others, the one that is "
            "marked as chosen. A point is a candidate's time in the last comparison, its bar reaches from the shorter to the longer "
            "of its two laps. Candidates whose bars overlap differ by little. mpi is the MPI library's own function.",
            f"{units.count(looks, 'comparison')} took {units.time(spent_ns)} in all."]
    return Part(title, says, [_lessons_plot(group, groups[group]) for group in sorted(groups)])


# --- handed back ---

def _handed_back(stats):
    title = "What was handed back to the MPI library"
    if not stats.handed_back:
        return Part(title, ["Nothing: libcoco ran every call."])
    times = collections.Counter()
    for call in stats.calls:
        times[call.function, call.handed_back] += call.total_ns
    order = sorted(stats.handed_back, key=lambda one: -times[one.function, one.reason])
    shown, note = most_important(order, lambda one: times[one.function, one.reason])
    most = order[0]
    plot = Plot(title="Time in calls that were handed back",
                says=f"{most.function} took most, {units.time(times[most.function, most.reason])}: {most.why}.",
                drawn=drawing.lying_bars([f"{one.function}: {one.reason}" for one in shown],
                                         [{"in the MPI library": times[one.function, one.reason]} for one in shown], "time in calls"),
                table=Table(["collective", "reason", "time"],
                            [[one.function, one.reason, units.time(times[one.function, one.reason])] for one in order]))
    advice = [Advice(f"{one.function}, {units.count(one.times, 'call')} at {'rank' if one.world_ranks.isdigit() else 'ranks'} "
                     f"{one.world_ranks}", one.why, one.help) for one in order]
    return Part(title, ["libcoco leaves a call to the MPI library where it cannot do better, or cannot serve it.", *note], [plot],
                advice=advice)


# --- all ---

def _about(stats):
    times, whole = parted(stats.calls), spent(stats.calls)
    if not stats.calls:
        return [f"{units.count(stats.world_ranks, 'rank')} made no call of these collectives."]
    ours = times["waiting"] + times["copying"]
    about = [f"{units.count(stats.world_ranks, 'rank')} spent {units.time(whole)} in collectives: {units.share(ours, whole)} in calls "
             f"that libcoco ran, {units.share(whole - ours, whole)} in the MPI library's own functions."]
    if ours:
        about.append(f"Of the time in libcoco {units.share(times['waiting'], ours)} was waiting for other ranks and "
                     f"{units.share(times['copying'], ours)} copying.")
    return about


def section(name, stats):
    parts = []
    if stats.calls:
        kinds = grouped(stats.calls, kind_of)
        parts = [_where_time_goes(kinds, stats.calls), _waiting(kinds, stats.calls), _against_library(stats), _handed_back(stats)]
    return Section(f"The run of {name}", _about(stats), parts)
