# SPDX-License-Identifier: BSD-3-Clause
"""The page: page.html filled in by Jinja2, which escapes every text; plots alone go in as they are."""
import itertools
import pathlib

import jinja2
import markupsafe

import colors
import svg

FOLDER = pathlib.Path(__file__).resolve().parent


def _style():
    rules = (FOLDER / "page.css").read_text(encoding="utf-8").replace("FONT", svg.FONT).replace("STYLE", svg.STYLE)
    return markupsafe.Markup(colors.stylesheet() + rules)


def page(title, sections):
    """Returns: the page as HTML."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, undefined=jinja2.StrictUndefined)
    numbers = itertools.count(1)

    def dressed(plot):
        return markupsafe.Markup(svg.dress(plot.drawn, f"plot-{next(numbers)}", plot.title, plot.says))

    return environment.get_template("page.html").render(title=title, sections=sections, style=_style(), dressed=dressed)
