# SPDX-License-Identifier: BSD-3-Clause
"""Draws the kinds of plots that the report has, by matplotlib. Each function gets plain numbers and returns SVG, to be dressed by
svg.py. All are as wide as a column of the page, so that their letters are as large as its text.
"""
import io
import logging
import math
import warnings

import matplotlib
import numpy
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

import colors
import units

WIDTH, HEIGHT = 440, 290  # pixels of the page
FONT_PIXELS = 12
# Of a legend: a letter, the rest of an entry, a row, all of it.
LETTER_PIXELS, LEGEND_PIXELS, LEGEND_ROW_PIXELS, LEGEND_MOST_PIXELS = 6.8, 46, 17, WIDTH - 45
PLACES_LEAST = 4  # of an axis, so that few bars are no wider than many
PIXELS_PER_INCH = 72  # matplotlib's points are the pixels of its SVG
LABELS_MOST = 11      # that fit below an axis
LABEL_LETTERS = 44    # that fit above a bar
MARKERS = "os^Dv<>"
LIBRARY_NAME = "mpi"
CHOSEN = "chosen"
ROOM_BEHIND = 1.06  # the longest bar: so much longer is the axis
ASIDE_MOST = 0.55  # so far apart are the points of one place
PARTS = {"waiting": colors.WAITING, "copying": colors.COPYING, "in the MPI library": colors.LIBRARY}
COLOR = colors.LIGHT

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # of the folder of its cache, and of fonts
SETTINGS = {
    "svg.fonttype": "none", "svg.hashsalt": "coco", "font.family": "DejaVu Sans", "font.size": FONT_PIXELS,
    "text.color": COLOR[colors.INK], "axes.labelcolor": COLOR[colors.INK], "axes.edgecolor": COLOR[colors.MUTED],
    "xtick.color": COLOR[colors.MUTED], "ytick.color": COLOR[colors.MUTED], "grid.color": COLOR[colors.GRID],
    "axes.facecolor": "none", "figure.facecolor": "none", "savefig.facecolor": "none", "axes.spines.top": False,
    "axes.spines.right": False, "axes.axisbelow": True, "legend.frameon": False, "lines.linewidth": 1.6, "lines.markersize": 5,
    "axes.unicode_minus": False,
}


def plain(text, most=LABEL_LETTERS):
    """Text that matplotlib takes for no formula, and that is not too long."""
    text = text if len(text) <= most else text[:most - 1] + "…"
    return text.replace("$", r"\$")


def drawn(draw, height=HEIGHT, columns=1, rows=1, width=WIDTH):
    """Lets draw(axes, ...) draw on axes of their own. Returns: SVG"""
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that its own font lacks
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        figure = Figure(figsize=(width / PIXELS_PER_INCH, height / PIXELS_PER_INCH), layout="constrained")
        draw(figure.subplots(rows, columns))
        out = io.StringIO()
        FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None})  # figure.savefig() draws twice
    return out.getvalue()


def _rows_of(labels):
    """Of a legend: as few as there is room for. They are filled column by column, evenly."""
    for rows in range(1, len(labels)):
        columns = numpy.array_split(labels, math.ceil(len(labels) / rows))  # as matplotlib does
        widest = [max(map(len, column)) for column in columns]
        if sum(LEGEND_PIXELS + LETTER_PIXELS * letters for letters in widest) <= LEGEND_MOST_PIXELS:
            return rows
    return len(labels)


def _height(names):
    """Of a plot with a legend of these names."""
    return HEIGHT + LEGEND_ROW_PIXELS * (_rows_of([plain(name) for name in names]) - 1)


def _legend(axes):
    """Above the axes."""
    handles, labels = axes.get_legend_handles_labels()
    if not labels:  # bars of no time
        return
    entries = sorted(zip(labels, handles), key=lambda entry: entry[0] == CHOSEN)
    labels, handles = zip(*entries)
    axes.legend(handles, labels, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncol=math.ceil(len(labels) / _rows_of(labels)),
                borderaxespad=0.2, columnspacing=1.2, handlelength=2)


def _named_places(axes, labels, what, named_most=LABELS_MOST):
    """Places 0, 1, ... of the x axis; of many only some are named."""
    step = math.ceil(len(labels) / named_most)
    axes.xaxis.set_major_locator(FixedLocator(range(0, len(labels), step)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: plain(labels[round(place)]) if 0 <= place < len(labels) else ""))
    aside = 0.6 + max(0, PLACES_LEAST - len(labels)) / 2
    axes.set_xlim(-aside, len(labels) - 1 + aside)
    axes.set_xlabel(what)


def _logarithmic(axes, least, most):
    """The y axis from below the least to above the most value."""
    low, high = least / 1.4, most * 1.4
    if high / low < 8:
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(8), middle * math.sqrt(8)
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades < 2.5 else (1,)
    ticks = [step * 10.0 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
             for step in steps]
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


# --- bars ---

def _pieces(bars, scale):
    """(name of the part, by bar where it begins, by bar how large it is) for each part that some bar has."""
    begins = [0.0] * len(bars)
    for name in PARTS:
        sizes = [bar.get(name, 0) / scale for bar in bars]
        if any(sizes):
            yield name, begins, sizes
            begins = [begin + size for begin, size in zip(begins, sizes)]


def _longest(bars):
    return max(sum(bar.values()) for bar in bars)


def lying_bars(labels, bars, what):
    """A bar for each label, of parts that are times in ns, with the label above it."""
    scale, unit = units.unit_for(_longest(bars))

    def draw(axes):
        for name, begins, sizes in _pieces(bars, scale):
            axes.barh(range(len(bars)), sizes, left=begins, height=0.42, label=name, color=COLOR[PARTS[name]])
        for place, label in enumerate(labels):
            axes.annotate(plain(label), (0, place), xytext=(1, 11), textcoords="offset points", va="bottom", fontsize=FONT_PIXELS - 0.5)
        axes.set(ylim=(len(bars) - 0.5, -0.85), xlim=(0, ROOM_BEHIND * _longest(bars) / scale or 1), xlabel=f"{what}, {unit}", yticks=[])
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        _legend(axes)

    return drawn(draw, height=100 + 42 * len(bars))


def standing_bars(labels, bars, what, by_what):
    scale, unit = units.unit_for(_longest(bars))

    def draw(axes):
        for name, begins, sizes in _pieces(bars, scale):
            axes.bar(range(len(bars)), sizes, bottom=begins, width=0.7, label=name, color=COLOR[PARTS[name]])
        _named_places(axes, labels, by_what)
        axes.set(ylim=(0, ROOM_BEHIND * _longest(bars) / scale or 1), ylabel=f"{what}, {unit}")
        axes.grid(axis="y")
        _legend(axes)

    return drawn(draw)


# --- points and lines ---

def styles(names):
    """For each name how it is drawn. The MPI library's own function looks alike in all plots."""
    found, number = {}, 0
    for name in names:
        if name == LIBRARY_NAME:
            found[name] = {"color": COLOR[colors.INK], "marker": "X", "linestyle": (0, (4, 2))}
            continue
        found[name] = {"color": COLOR[colors.SERIES[number % len(colors.SERIES)]], "marker": MARKERS[number % len(MARKERS)],
                       "linestyle": "-" if number < len(MARKERS) else ":"}
        number += 1
    return found


def _draw_lines(axes, labels, series, by_what, named_most=LABELS_MOST):
    """series: for each name its values by place; None: there is none."""
    for name, style in styles(series).items():
        points = [(place, value) for place, value in enumerate(series[name]) if value is not None]
        axes.plot(*zip(*points), label=plain(name), **style)
    _named_places(axes, labels, by_what, named_most)
    axes.grid(axis="y")


def shares(labels, series, what, by_what):
    """Lines of percentages."""
    def draw(axes):
        _draw_lines(axes, labels, series, by_what)
        axes.set(ylim=(-3, 103), ylabel=what)
        _legend(axes)

    return drawn(draw, height=_height(series))


def draw_ratios(axes, labels, series, what, by_what, named_most=LABELS_MOST):
    """Lines of ratios of speeds, by powers of two; where neither is faster there is a line of its own."""
    _draw_lines(axes, labels, series, by_what, named_most)
    values = [value for line in series.values() for value in line if value is not None] + [1.0]
    low, high = math.floor(math.log2(min(values)) - 0.15), math.ceil(math.log2(max(values)) + 0.15)
    axes.set_yscale("log", base=2)
    axes.set_ylim(2.0 ** low, 2.0 ** high)
    step = math.ceil((high - low) / 8)
    axes.yaxis.set_major_locator(FixedLocator([2.0 ** power for power in range(low, high + 1) if power % step == 0]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.axhline(1, color=COLOR[colors.INK], linewidth=1.1, linestyle=(0, (1, 1.5)))
    axes.set_ylabel(what)


def ratios(labels, series, what, by_what):
    def draw(axes):
        draw_ratios(axes, labels, series, what, by_what)
        _legend(axes)

    return drawn(draw, height=_height(series))


def _quartiles(axes, name, points, style):
    """points: (place, middle, low, high)"""
    places, middles, lows, highs = zip(*points)
    below = [max(middle - low, 0) for middle, low in zip(middles, lows)]
    above = [max(high - middle, 0) for middle, high in zip(middles, highs)]
    axes.errorbar(places, middles, yerr=[below, above], label=plain(name), capsize=2.5, elinewidth=1.1, **{**style, "linewidth": 0.9})


def _rings(axes, points):
    """Around the points of what was chosen."""
    axes.plot([place for place, _ in points], [middle for _, middle in points], linestyle="none", marker="o", markersize=11,
              markerfacecolor="none", markeredgecolor=COLOR[colors.INK], markeredgewidth=1.2, label=CHOSEN)


def candidates(labels, series, chosen, by_what):
    """Times of a call, with quartiles. series: for each candidate (middle, low, high) in ns by place, or None; chosen: the name
    of the candidate that was chosen, by place."""
    known = [point for line in series.values() for point in line if point]
    scale, unit = units.unit_for(max(middle for middle, _, _ in known))

    def draw(axes):
        ringed = []
        for number, (name, style) in enumerate(styles(series).items()):
            aside = (number - (len(series) - 1) / 2) * ASIDE_MOST / len(series)
            points = [(place, [value / scale for value in point]) for place, point in enumerate(series[name]) if point]
            _quartiles(axes, name, [(place + aside, *values) for place, values in points], style)
            ringed += [(place + aside, values[0]) for place, values in points if chosen[place] == name]
        _rings(axes, ringed)
        _named_places(axes, labels, by_what)
        _logarithmic(axes, min(map(min, known)) / scale, max(map(max, known)) / scale)
        axes.set_ylabel(f"time of a call, {unit}")
        axes.grid(axis="y")
        _legend(axes)

    return drawn(draw, height=_height([*series, CHOSEN]) + 20)
