# SPDX-License-Identifier: BSD-3-Clause
"""A Sphinx extension: links to files that are no pages, and to folders, lead to pages that show them.

A text file becomes a page `files/PATH.html`, with colours; a picture is copied there; a folder becomes a page with a list of its files. A
folder that has a README.md is that page. A link to nothing is left to Sphinx, which warns.
"""
import html
import pathlib
import posixpath
import shutil

import pygments.lexers
import pygments.util
from docutils import nodes
from sphinx import addnodes
from sphinx.util.osutil import relative_uri

FOLDER = "files"
PICTURES = {".png", ".svg"}
BEFORE_DOWNLOADS = 400  # priority of a listener that Sphinx calls before it copies files for downloading


def page_name(path):
    return posixpath.join(FOLDER, path)


def files_in(root, folder):
    """All files below the folder, as paths from the root."""
    found = [path for path in sorted((root / folder).rglob("*")) if path.is_file() and not path.name.startswith(".")]
    return [path.relative_to(root).as_posix() for path in found]


def link_files(app, doctree):
    """Lets links to files and folders lead to the pages that collect_pages will make."""
    root, here = pathlib.Path(app.srcdir), app.env.docname
    for node in list(doctree.findall(lambda n: isinstance(n, (addnodes.download_reference, addnodes.pending_xref)))):
        target = node["reftarget"]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        if path.startswith("..") or (isinstance(node, addnodes.pending_xref) and not (root / path).is_dir()):
            continue
        if (root / path / "README.md").is_file():
            node["reftarget"] = posixpath.join(target, "README.md")
            continue
        app.coco_linked.add(path)
        link = nodes.reference("", "", *node.children, refuri=app.builder.get_relative_uri(here, page_name(path)), internal=True)
        node.replace_self(link)


def shown_file(app, path):
    text = (pathlib.Path(app.srcdir) / path).read_text(encoding="utf-8")
    try:
        language = pygments.lexers.get_lexer_for_filename(path).aliases[0]
    except pygments.util.ClassNotFound:
        language = "text"
    return app.builder.highlighter.highlight_block(text, language, linenos=False)


def listed_folder(path, files):
    here = page_name(path) + ".html"
    rows = []
    for file in files:
        target = page_name(file) + ("" if pathlib.Path(file).suffix in PICTURES else ".html")
        rows.append(f'<li><a href="{relative_uri(here, target)}">{html.escape(posixpath.relpath(file, path))}</a></li>')
    return f"<ul>{''.join(rows)}</ul>"


def collect_pages(app):
    """Makes the pages of all that is linked. A folder's files have pages, too."""
    root = pathlib.Path(app.srcdir)
    folders = {path: files_in(root, path) for path in app.coco_linked if (root / path).is_dir()}
    files = {path for path in app.coco_linked if path not in folders}.union(*folders.values())
    bodies = {path: listed_folder(path, listed) for path, listed in folders.items()}
    for path in files:
        if pathlib.Path(path).suffix in PICTURES:
            target = pathlib.Path(app.outdir, FOLDER, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / path, target)
        else:
            bodies[path] = shown_file(app, path)
    for path, body in sorted(bodies.items()):
        title = html.escape(path)
        yield page_name(path), {"title": title, "body": f"<h1>{title}</h1>\n{body}"}, "page.html"


def setup(app):
    app.coco_linked = set()
    app.connect("doctree-read", link_files, priority=BEFORE_DOWNLOADS)
    app.connect("html-collect-pages", collect_pages)
    return {"version": "1", "parallel_read_safe": False}
