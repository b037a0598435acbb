# SPDX-License-Identifier: BSD-3-Clause
"""Makes one HTML page of what libcoco has measured. `coco report` starts this.

usage: python3 FOLDER [-o OUTPUT] FILE...
"""
import os
import sys

NEEDED = {"matplotlib": "python3-matplotlib", "jinja2": "python3-jinja2"}
# Of the system: what its packages bring is there, whatever other python3 comes first in PATH.
SYSTEM_PYTHON = "/usr/bin/python3"
WRONG_USE = 2


def fail(text):
    sys.stderr.write(f"coco: error: report: {text}\n")
    sys.exit(WRONG_USE)


def check_packages():
    """Goes on with the system's own Python if this one lacks a package; ends the program if that lacks it, too."""
    os.environ.pop("MPLBACKEND", None)  # that of a notebook, perhaps, which is not installed here
    for module, package in NEEDED.items():
        try:
            __import__(module)
        except ImportError as why:
            if sys.executable != SYSTEM_PYTHON and os.access(SYSTEM_PYTHON, os.X_OK):
                os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, "-B", *sys.argv])
            fail(f"{sys.executable} cannot load {module} ({why}); on Debian, install {package}")


def arguments():
    """(files, output or None)"""
    words = sys.argv[1:]
    output = None
    if words[:1] == ["-o"]:
        output, words = words[1], words[2:]
    return words[1:] if words[:1] == ["--"] else words, output


def main():
    check_packages()
    import report  # which needs the packages
    paths, output = arguments()
    try:
        output = report.output_for(paths, output)
        page = report.make(paths)
    except report.Unfit as why:
        fail(why)
    try:
        report.write(output, page)
    except OSError as why:
        fail(f"{report.shown_name(output)}: cannot be written: {why.strerror}")
    if output != "/dev/stdout":
        sys.stdout.write(f"{report.shown_name(output)}\n")


main()
