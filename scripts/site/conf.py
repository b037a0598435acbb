# SPDX-License-Identifier: BSD-3-Clause
"""How Sphinx makes a site of the Markdown pages; scripts/make_site runs it.

The sources are the root of the repository, so that links lead to the same files as in a checkout. docs/README.md is the one list of
pages: its headings and links become the navigation.
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

project = "libcoco"
author = "the libcoco authors"
release = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text(encoding="utf-8"))[1]
extensions = ["myst_parser", "file_pages"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md"]
exclude_patterns = [".*", "build*", "bench", "lib", "packaging", "tests", "shared"]
# What Markdown does not have.
myst_disable_syntax = ["myst_role", "myst_target", "myst_line_comment", "myst_block_break"]
myst_heading_anchors = 3
smartquotes = False
highlight_language = "none"  # of blocks that name no language

html_theme = "furo"
pygments_dark_style = pygments_style = "tango"  # the site is light: see static/site.css
html_title = f"libcoco {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["start"]  # index.html
html_copy_source = False
html_show_sourcelink = False
html_use_index = False
html_show_copyright = False

DECISIONS = "docs/decisions/README"
# Debian's furo has it as a module, which browsers refuse from the disk. It marks where a reader is on a page, and switches colours.
LEFT_OUT = "_static/scripts/furo.js"


def toctree(caption, pages, *options):
    lines = ["", "```{toctree}", ":hidden:", *options, *([f":caption: {caption}"] if caption else []), "", *pages, "```", ""]
    return "\n".join(lines)


def document(link):
    """The name that Sphinx has for the page to which this link in docs/README.md leads."""
    path = (ROOT / "docs" / link).resolve()
    return "/" + str(path.relative_to(ROOT).with_suffix(""))


def navigation():
    """A table of contents for each heading of docs/README.md."""
    text = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    made = toctree("", ["/docs/README"])
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        caption = part.splitlines()[0]
        links = re.findall(r"\]\(([^)#]+\.md)\)", part)
        made += toctree(caption, dict.fromkeys(document(link) for link in links))
    return made


def add_navigation(_app, name, source):
    if name == root_doc:
        source[0] += navigation()
    elif name == DECISIONS:
        source[0] += toctree("", ["[0-9]*"], ":glob:")


def leave_script_out(_app, _name, _template, context, _doctree):
    context["script_files"] = [script for script in context["script_files"] if script != LEFT_OUT]


def setup(app):
    app.connect("source-read", add_navigation)
    app.connect("html-page-context", leave_script_out)
