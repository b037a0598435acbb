# SPDX-License-Identifier: BSD-3-Clause
"""The colours of plots and page, on light and on dark paper. Those of series were searched for so that people with any kind of
colour vision tell them apart, the first four best (tests/tools/report_test.py measures that); each series has a marker of its
own besides.

Plots are drawn in the light colours. svg.py then puts a CSS variable in the place of each, which has both.
"""

PAPER, INK, MUTED, GRID = "paper", "ink", "muted", "grid"
WAITING, COPYING, LIBRARY = "waiting", "copying", "library"
SERIES = [f"series-{number}" for number in range(1, 8)]

LIGHT = {PAPER: "#ffffff", INK: "#1c2127", MUTED: "#57606a", GRID: "#dde1e6",
         WAITING: "#e69f00", COPYING: "#0b6fae", LIBRARY: "#7a828c",
         "series-1": "#044ab8", "series-2": "#b04d0b", "series-3": "#45a192", "series-4": "#6a3e5d",
         "series-5": "#b17f33", "series-6": "#8f6dec", "series-7": "#017b97"}
DARK = {PAPER: "#15181c", INK: "#e8eaed", MUTED: "#a6adb6", GRID: "#343a41",
        WAITING: "#f0b429", COPYING: "#3d9bd6", LIBRARY: "#8b949e",
        "series-1": "#377cf5", "series-2": "#e74600", "series-3": "#93c29c", "series-4": "#a27092",
        "series-5": "#c6b030", "series-6": "#9b8fda", "series-7": "#30cff1"}


def _declarations(colors):
    return "".join(f"--{name}:{color};" for name, color in colors.items())


def stylesheet():
    """The variables, for the :root of a page or of a plot."""
    return (f":root{{color-scheme:light dark;{_declarations(LIGHT)}}}"
            f"@media(prefers-color-scheme:dark){{:root{{{_declarations(DARK)}}}}}")
