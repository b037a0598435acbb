# SPDX-License-Identifier: BSD-3-Clause
"""The page: a section for each file or comparison, and page.html filled in by Jinja2, which escapes every text; plots alone go in
as they are. Loads what draws plots, which takes half a second."""
import itertools
import pathlib

import jinja2
import markupsafe

import bench_file
import bench_plots
import colors
import compare_plots
import stats_file
import stats_plots
import svg
import tune_file
import tune_plots

OF_KIND = {stats_file.Stats: stats_plots.section, tune_file.Tune: tune_plots.section, bench_file.Bench: bench_plots.section}
FOLDER = pathlib.Path(__file__).resolve().parent


def _style():
    rules = (FOLDER / "page.css").read_text(encoding="utf-8").replace("FONT", svg.FONT).replace("STYLE", svg.STYLE)
    return markupsafe.Markup(colors.stylesheet() + rules)


def _sections(reports):
    runs = [(name, report) for name, report in reports if isinstance(report, stats_file.Stats)]
    # The first run is what the others are held against.
    compared = [compare_plots.section((runs[0][0], name), (runs[0][1], report)) for name, report in runs[1:]]
    return compared + [OF_KIND[type(report)](name, report) for name, report in reports]


def page(title, reports):
    """reports: (heading, what was read) of each file. Returns: the page as HTML."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, undefined=jinja2.StrictUndefined)
    numbers = itertools.count(1)

    def dressed(plot):
        return markupsafe.Markup(svg.dress(plot.drawn, f"plot-{next(numbers)}", plot.title, plot.says))

    return environment.get_template("page.html").render(title=title, sections=_sections(reports), style=_style(), dressed=dressed)
