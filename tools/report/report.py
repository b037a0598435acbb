# SPDX-License-Identifier: BSD-3-Clause
"""From files to one page."""
import os
import tempfile

import reading
from checks import Unfit, printable


def shown_name(path):
    """A file name may hold any bytes."""
    return printable(os.fsencode(path).decode("utf-8", "replace"))


def _read(path):
    try:
        return reading.read(path)
    except Unfit as why:
        raise Unfit(f"{shown_name(path)}: {why}") from why


def _headings(paths):
    """How the page calls its files: without their folders where that tells them apart."""
    names = [os.path.basename(path) for path in paths]
    return [shown_name(name) for name in (names if len(set(names)) == len(names) else paths)]


def make(paths):
    """Returns: the page for these files. Raises: Unfit"""
    reports = list(zip(_headings(paths), map(_read, paths)))
    import page  # only now: who has named a wrong file need not wait for what draws plots
    return page.page("libcoco report", reports)


def write(path, text):
    """Whole or not at all: under another name first. What is no plain file, such as /dev/stdout, is written to. Raises: OSError"""
    data = text.encode("utf-8")
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            file.write(data)
        return
    path = os.path.realpath(path)
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), prefix=".coco-report-", delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), 0o666 & ~_umask())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def output_for(paths, output):
    """Raises: Unfit where a file that is read would be overwritten."""
    output = output or os.path.splitext(paths[0])[0] + ".html"
    for path in paths:
        if os.path.exists(output) and os.path.exists(path) and os.path.samefile(output, path):
            raise Unfit(f"{shown_name(output)}: would overwrite a file that the report is made of")
    return output
