#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests `coco report`: pages of all kinds of files, what is refused, and how a browser shows them.

usage: report_test.py COCO SOURCES       SOURCES: the root of the sources
"""
import copy
import html.parser
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy
import PIL.Image

COCO = os.path.realpath(sys.argv.pop(1))
SOURCES = pathlib.Path(sys.argv.pop(1))
RESULTS = SOURCES / "bench" / "results"
sys.path.insert(0, os.path.join(os.path.dirname(COCO), "tools", "report"))

import checks  # noqa: E402
import colors  # noqa: E402
import drawing  # noqa: E402
import reading  # noqa: E402
import report  # noqa: E402
import units  # noqa: E402

VOID = {"meta", "link", "img", "br", "hr", "input"}


def coco(*words, cwd=None, **extra):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COCO_")} | extra
    return subprocess.run([COCO, *map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False)


class Page(html.parser.HTMLParser):
    """What a page holds: all elements with attributes, its text, and the text of each figure."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts, self.figures = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "figure":
            self.figures.append({})

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append(data)
        if "figure" in self.open:
            part = next((tag for tag in ("h4", "title", "desc", "text", "figcaption", "td", "th") if tag in self.open), None)
            self.figures[-1].setdefault(part, []).append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.texts))


class Folder(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory(prefix="coco-report-")
        self.folder = pathlib.Path(self.place.name)
        self.addCleanup(self.place.cleanup)

    def write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    def make(self, *files):
        """In this process, where matplotlib is loaded; Output has what the command adds. Returns: the page, and its text."""
        text = report.make(list(map(str, files)))
        self.check_self_contained(text)
        return Page(text), text

    def check_self_contained(self, text):
        page = Page(text)
        ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        self.assertEqual(len(ids), len(set(ids)))
        for tag, attributes in page.elements:
            self.assertNotIn(tag, {"script", "link", "img", "iframe", "object", "embed", "base", "form"})
            for name, value in attributes.items():
                self.assertFalse(name.startswith("on"), name)
                self.assertNotIn(name, {"src", "srcset", "xlink:href", "action"})
                if name == "href":
                    self.assertIn(value[1:], ids)
                for target in re.findall(r"url\(([^)]*)\)", value or ""):
                    self.assertIn(target[1:], ids)
        styles = re.findall(r"<style>(.*?)</style>", text, re.S)
        self.assertEqual(len(styles), 1)
        self.assertNotRegex(styles[0], r"@import|url\(")

    def check_figures(self, page, least):
        self.assertGreaterEqual(len(page.figures), least)
        for figure in page.figures:
            for part in ("h4", "figcaption", "td", "th", "text"):
                self.assertTrue("".join(figure[part]).strip(), part)
            self.assertEqual(figure["title"], figure["h4"])
            self.assertEqual(figure["desc"], figure["figcaption"])
            self.assertRegex(" ".join(figure["text"]), r"(time|waiting|times as fast).*(bytes|, (ns|µs|ms|s)\b)|bytes.*(time|waiting)")
        roles = [attributes.get("role") for tag, attributes in page.elements if tag == "svg"]
        self.assertEqual(roles, ["img"] * len(page.figures))


def stats(**more):
    """A report with one call of each kind."""
    call = {"function": "MPI_Alltoall", "comm_ranks": 4, "block_first": 64, "block_last": 127, "algorithm": "eager",
            "handed_back": None, "world_ranks": "0-3", "calls": 10, "bytes": 1, "messages": 0, "messages_most": 0,
            "wire_bytes": 0, "wire_bytes_most": 0, "median_ns": 900, "total_ns": 10_000, "wait_ns": 7_500, "staged": 0}
    left = call | {"function": "MPI_Bcast", "block_first": None, "block_last": None, "algorithm": "mpi", "handed_back": "send_private",
                   "total_ns": 30_000, "wait_ns": None}
    hint = {"function": "MPI_Bcast", "reason": "send_private", "times": 10, "world_ranks": "0-3",
            "why": "send buffer outside the shared heap", "help": "allocate it with malloc", "text": "as the table says it"}
    lesson = {"function": "MPI_Alltoall", "nodes": 1, "ranks_per_node": 4, "block_first": 33, "block_last": 64, "incumbent": "eager",
              "candidates": [{"name": "eager", "time_ns": 1000, "low_ns": 900, "high_ns": 1200},
                             {"name": "mpi", "time_ns": 2500, "low_ns": 2400, "high_ns": 2600},
                             {"name": "naive", "time_ns": None, "low_ns": None, "high_ns": None}],
              "calls": 500, "looks": 3, "changes": 1, "spent_ns": 4000}
    return {"format": 1, "world_ranks": 4, "calls": [call, left], "handed_back": [hint], "learned": [lesson]} | more


def tune(**more):
    def cell(collective, block_bytes, buffers, chosen, degree=None):
        times = {"eager": 300 + block_bytes, "morton": 900 + block_bytes // 4, "mpi": 4000}
        return {"collective": collective, "block_bytes": block_bytes, "buffers": buffers, "degree": degree, "chosen": chosen,
                "candidates": [{"name": name, "samples": 15, "median_ns": time, "low_ns": time - 50, "high_ns": time + 99.5}
                               for name, time in times.items()]}
    return {"kind": "coco tune", "libcoco": "0.1.0", "mpi": "Some MPI 1.0", "machine": "a machine, 4 CPUs", "date": "2026-11-24",
            "nodes": 1, "ranks_per_node": 4, "domains": 1, "crowded": False, "ranks": 4, "is_complete": False,
            "cells": [cell("alltoall", 512, "warm", "eager"), cell("alltoall", 1024, "warm", "morton"),
                      cell("alltoall", 2048, "warm", "morton"), cell("alltoall", 512, "cold", "eager"),
                      cell("neighbor_alltoall", 8, "warm", "eager", 3)]} | more


BENCH = """# a machine
== mpich
alltoall, 2 ranks
     bytes     MPI_X us   library us    ratio
         8        0.100        0.400     4.00
        16        0.200        0.200     1.00
           geometric mean 2.00, to 1 KiB 2.00, to 4 KiB 2.00, from 8 KiB 0.00, worst 1.00
"""
BENCH_ROWS = "alltoall,2,8,0.100,0.400,4.000\nalltoall,2,16,0.200,0.200,1.000\n"


class Pages(Folder):
    def test_stats(self):
        page, _ = self.make(self.write("run.json", stats()))
        self.check_figures(page, 6)
        for words in ("4 ranks spent 40.0 µs in collectives: 25 % in calls that libcoco ran, 75 % in the MPI library's own functions.",
                      "Of the time in libcoco 75 % was waiting for other ranks and 25 % copying.",
                      "MPI_Bcast on 4 ranks took most: 30.0 µs, 75 % of all.",
                      "Blocks of unknown size took most: 30.0 µs in 10 calls.",
                      "Blocks of 64 to 127 bytes took most: 10.0 µs in 10 calls.",
                      "MPI_Alltoall, 4 ranks, waited longest: 7.50 µs, 75 % of its time in libcoco.",
                      "What was chosen is 2.50 times as fast as the MPI library's own function.",
                      "3 comparisons took 4.00 µs in all.",
                      "MPI_Bcast, 10 calls at ranks 0-3 send buffer outside the shared heap What would help: allocate it with malloc",
                      "MPI_Bcast took most, 30.0 µs: send buffer outside the shared heap.", "not tried"):
            self.assertIn(words, page.text)

    def test_a_real_run(self):
        path = RESULTS / "espresso-2-ranks.json"
        page, _ = self.make(path)
        self.check_figures(page, 8)
        run = json.loads(path.read_text(encoding="utf-8"))
        self.assertIn(f"2 ranks spent {units.time(sum(call['total_ns'] for call in run['calls']))} in collectives", page.text)
        for hint in run["handed_back"]:
            self.assertIn(f"{hint['function']}, {units.count(hint['times'], 'call')} at ranks {hint['world_ranks']} {hint['why']}", page.text)
        cells = {text for figure in page.figures for text in figure["td"]}
        for candidate in (candidate for lesson in run["learned"] for candidate in lesson["candidates"] if candidate["time_ns"]):
            self.assertLessEqual({candidate["name"], *(units.time(candidate[name]) for name in ("time_ns", "low_ns", "high_ns"))}, cells)

    def test_stats_with_little_in_it(self):
        page, _ = self.make(self.write("run.json", stats(calls=[], handed_back=[], learned=[])))
        self.assertIn("4 ranks made no call of these collectives.", page.text)
        all_ours = stats(handed_back=[])
        del all_ours["learned"]
        all_ours["calls"] = all_ours["calls"][:1]
        page, _ = self.make(self.write("run.json", all_ours))
        self.assertIn("Nothing: libcoco ran every call.", page.text)
        self.assertIn("Nothing was learned in this run.", page.text)
        none_ours = stats()
        none_ours["calls"] = [none_ours["calls"][1] | {"total_ns": 0}]
        page, _ = self.make(self.write("run.json", none_ours))
        self.assertIn("libcoco ran none of the calls", page.text)

    def test_many_communicators(self):
        many = stats()
        many["calls"] = [many["calls"][0] | {"comm_ranks": ranks, "total_ns": 10_000 * ranks} for ranks in range(1, 21)]
        page, _ = self.make(self.write("run.json", many))
        self.assertIn("Shown are the 12 with most time; 8 more have less.", page.text)
        self.assertIn("MPI_Alltoall, 9 ranks: time by block size", page.text)
        self.assertNotIn("MPI_Alltoall, 8 ranks: time by block size", page.text)

    def test_tune(self):
        page, _ = self.make(self.write("tune.json", tune()))
        self.check_figures(page, 3)
        for words in ("libcoco 0.1.0 with Some MPI 1.0 on a machine, 4 CPUs, 2026-11-24: 4 ranks, 1 node of 4 ranks in 1 NUMA domain.",
                      "The measurement was interrupted, or its time was too short: ", "alltoall, warm buffers", "alltoall, cold buffers",
                      "neighbor_alltoall, 3 edges to other nodes, warm buffers",
                      "Chosen: eager to 512 bytes, morton to 2K bytes. What was chosen is 3.64 times as fast as the MPI library's own "
                      "function (geometric mean): from 2.83 (blocks of 2K bytes) to 4.93 (blocks of 512 bytes).",
                      "Chosen: eager to 8 bytes. What was chosen is 13.0 times as fast as the MPI library's own function."):
            self.assertIn(words, page.text)
        self.assertNotIn("interrupted", self.make(self.write("tune.json", tune(is_complete=True)))[0].text)
        self.assertIn("Nothing was measured.", self.make(self.write("tune.json", tune(cells=[])))[0].text)

    def test_legend_is_no_wider_than_its_plot(self):
        """Columns are even: three of them would have the two longest names side by side."""
        names = ["mpi", "eager", "direct", "segmented", "segmented:segment=16384", "segmented:segment=65536", drawing.CHOSEN]
        self.assertEqual(drawing._rows_of(names), 4)

    def test_bench_has_the_means_of_its_file(self):
        for name in ("2-cores.txt", "neighbor-cluster-2-cores.txt"):
            with self.subTest(name):
                page, _ = self.make(RESULTS / name)
                self.check_figures(page, 8)
                own = re.findall(r"geometric mean (\d+\.\d+),.* worst (\d+\.\d+)\n", (RESULTS / name).read_text(encoding="utf-8"))
                shown = re.findall(r": (\d+\.\d+) times as fast, at least (\d+\.\d+) \(blocks",
                                   "".join(text for figure in page.figures for text in figure["figcaption"]))
                self.assertGreater(len(own), 11)
                self.assertEqual(len(own), len(shown))
                for place in (0, 1):  # the file's come from times with more digits
                    for mine, theirs in zip(sorted(float(one[place]) for one in shown), sorted(float(one[place]) for one in own)):
                        self.assertAlmostEqual(mine, theirs, delta=0.011)

    def test_programs_of_bench(self):
        page, _ = self.make(RESULTS / "neighbor-2-cores.txt")
        self.assertIn("heat2d, open, 509 x 701 points on 2 x 1 ranks, 200 iterations 137 µs 131 µs 1.04", page.text)

    def test_csv(self):
        table = self.make(self.write("bench.txt", BENCH))[0].figures[0]
        self.assertEqual(self.make(self.write("bench.csv", BENCH_ROWS))[0].figures[0]["td"], table["td"])
        _, text = self.make(self.write("bench.csv", f"{BENCH_ROWS}# again\n{BENCH_ROWS}"))
        self.assertIn("2 ranks, measurement 2", text)
        page, _ = self.make(self.write("bench.csv", "allgather,moore:2:1,4,8,0.5,1.0,2.0\n"))
        self.assertIn("neighbor_allgather, 4 ranks moore:2:1: 2.00 times as fast", page.text.replace(" moore:2:1 ", " ", 1))

    def test_two_runs(self):
        faster = stats()
        faster["calls"][0] |= {"total_ns": 4_000, "wait_ns": 0}
        page, text = self.make(self.write("a.json", stats()), self.write("b.json", faster))
        titles = re.findall(r"<h2>(.*?)</h2>", text)
        self.assertEqual(titles, ["b.json compared with a.json", "The run of a.json", "The run of b.json"])
        for words in ("In all 40.0 µs in the first run and 34.0 µs in the second, 1.18 times as fast.",
                      "Where the first run spent most, in MPI_Bcast, 4 ranks, blocks of unknown size, a call took 3.00 µs and takes 3.00 µs "
                      "in the second: 1.00 times as fast."):
            self.assertIn(words, page.text)
        ratios = next(figure for figure in page.figures if figure["h4"][0].startswith("Speed of a call"))
        self.assertEqual(ratios["td"], ["MPI_Bcast", "1.00", "MPI_Alltoall", "2.50"])
        faster["calls"][0]["calls"] = 11
        self.assertIn("did not make equally many calls", self.make(self.folder / "a.json", self.write("b.json", faster))[0].text)

    def test_all_kinds_on_one_page(self):
        page, text = self.make(self.write("a.json", stats()), self.write("t.json", tune()), self.write("b.txt", BENCH))
        self.check_figures(page, 10)
        self.assertEqual(re.findall("<h2>(.*?)</h2>", text), ["The run of a.json", "coco tune: t.json", "Benchmark: b.txt"])

    def test_files_of_one_name(self):
        (self.folder / "other").mkdir()
        first, second = self.write("bench.txt", BENCH), self.write("other/bench.txt", BENCH)
        self.assertEqual(re.findall("<h2>(.*?)</h2>", self.make(first, second)[1]), [f"Benchmark: {first}", f"Benchmark: {second}"])


class Output(Folder):
    def test_page_of_the_command(self):
        """Byte for byte what the other tests look at, whatever this process has drawn before."""
        files = [self.write("a.json", stats()), self.write("t.json", tune()), self.write("b.txt", BENCH)]
        page = self.folder / "page.html"
        result = coco("report", "-o", page, *files)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, f"{page}\n", ""))
        self.assertEqual(page.read_text(encoding="utf-8"), self.make(*files)[1])

    def test_beside_the_first_file(self):
        self.write("run.csv", BENCH_ROWS)
        self.write("bench.txt", BENCH)
        result = coco("report", "run.csv", "bench.txt", cwd=self.folder)
        self.assertEqual((result.returncode, result.stdout), (0, "run.html\n"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["bench.txt", "run.csv", "run.html"])
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual((self.folder / "run.html").stat().st_mode & 0o777, 0o666 & ~mask)

    def test_what_is_wrong_leaves_the_old_page(self):
        page = self.write("run.html", "old")
        self.write("run.csv", BENCH_ROWS)
        result = coco("report", "run.csv", "no-such-file", cwd=self.folder)
        self.assertEqual(result.returncode, 2)
        self.assertEqual(page.read_text(encoding="utf-8"), "old")
        self.assertEqual(coco("report", "run.csv", cwd=self.folder).returncode, 0)
        self.assertIn("libcoco report", page.read_text(encoding="utf-8"))

    def test_no_plain_file(self):
        result = coco("report", "-o", "/dev/stdout", self.write("bench.txt", BENCH))
        self.assertEqual(result.returncode, 0)
        self.assertTrue(result.stdout.startswith("<!DOCTYPE html>") and result.stdout.endswith("</html>"))

    def test_link(self):
        target = self.write("target.html", "old")
        (self.folder / "page.html").symlink_to("target.html")
        self.assertEqual(coco("report", "-o", "page.html", self.write("bench.txt", BENCH), cwd=self.folder).returncode, 0)
        self.assertTrue((self.folder / "page.html").is_symlink())
        self.assertIn("libcoco report", target.read_text(encoding="utf-8"))


class Refused(Folder):
    def refused(self, words, *arguments, **extra):
        result = coco("report", *arguments, cwd=self.folder, **extra)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertTrue(result.stderr.startswith("coco: error: report: "), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn(words, result.stderr)

    def test_use(self):
        self.refused("which files?")
        self.write("run.html", BENCH)
        self.refused("run.html: would overwrite a file that the report is made of", "run.html")
        self.refused("no/page.html: cannot be written: No such file or directory", "-o", "no/page.html", "run.html")
        self.assertEqual(os.listdir(self.folder), ["run.html"])

    def test_files(self):
        self.refused("none.json: cannot be read: No such file or directory", "none.json")
        self.refused(f"{self.folder}: cannot be read: Is a directory", self.folder)
        self.write("--bad.json", "{")
        self.refused("--bad.json: not JSON: ", "--", "--bad.json")

    def test_packages(self):
        self.write("bench.txt", BENCH)
        self.refused("python3 cannot be run: No such file or directory; on Debian, install python3-matplotlib and python3-jinja2",
                     "bench.txt", PATH="/nowhere")
        for module in ("matplotlib", "jinja2"):
            hidden = self.write(f"{module}.py", f"raise ImportError('no {module} in this test')\n")
            self.refused(f"cannot load {module} (no {module} in this test); on Debian, install python3-{module}", "bench.txt",
                         PYTHONPATH=str(self.folder))
            hidden.unlink()

    def unfit(self, words, text, is_json=True):
        with self.assertRaises(checks.Unfit) as raised:
            reading.parse(text if isinstance(text, str) else json.dumps(text), is_json)
        self.assertIn(words, str(raised.exception))

    def test_kinds(self):
        self.unfit("not JSON", "")
        self.unfit("not JSON", BENCH)
        self.unfit("no report", "[1]")
        self.unfit("nested too deeply", '{"a":' + 100_000 * "[")
        self.unfit("neither of COCO_STATS=FILE.json nor of coco tune", {"kind": "something else"})
        self.unfit("has format 2, and this command knows format 1", stats(format=2))
        self.unfit("neither JSON nor results of scripts/bench", "", is_json=False)
        for name in ("trials-2-cores.txt", "copy-2-cores.txt", "short-lived-2-cores.txt"):
            self.unfit("neither JSON nor results of scripts/bench", (RESULTS / name).read_text(encoding="utf-8"), is_json=False)
        self.write("binary", "")
        (self.folder / "binary").write_bytes(b"\xff\xfe\x00")
        with self.assertRaisesRegex(checks.Unfit, "not a text file"):
            reading.read(str(self.folder / "binary"))

    def damage(self, report, *path):
        """Puts wrong things in the place of a value: each has to be refused, by the name of the field."""
        for wrong in ("removed", -1, "12", True, 1e300, float("nan"), [], {}, None):
            worse = copy.deepcopy(report)
            place = worse
            for step in path[:-1]:
                place = place[step]
            if isinstance(wrong, type(place[path[-1]])) and not isinstance(wrong, (int, float)):
                continue
            if wrong == "removed":
                del place[path[-1]]
            elif wrong is None and place[path[-1]] is None:
                continue
            else:
                place[path[-1]] = wrong
            with self.subTest(path=path, wrong=wrong):
                self.unfit(path[-1], worse)

    def test_damaged(self):
        for path in (["world_ranks"], ["calls", 0, "total_ns"], ["calls", 0, "comm_ranks"], ["learned", 0, "looks"],
                     ["learned", 0, "candidates"], ["handed_back", 0, "times"]):
            self.damage(stats(), *path)
        for path in (["ranks"], ["cells", 0, "block_bytes"], ["cells", 0, "candidates", 0, "samples"]):
            self.damage(tune(), *path)
        self.unfit("has no function", stats(calls=[1]))
        self.unfit("median_ns", tune(cells=[tune()["cells"][0] | {"candidates": [{"name": "a", "samples": 1, "median_ns": "1"}]}]))


HOSTILE = ["<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</title></svg><script>", "$\\frac{", "a$b$c", "{{ 7 * 7 }}",
           "\x00\x1b[31m", "\ud800", "&lt;&amp;", "']]>", "\u202eright to left", "x" * 3000, "", "日本"]


class Hostile(Folder):
    def test_names(self):
        run, report = stats(), tune()
        for number, name in enumerate(HOSTILE):
            run["calls"].append(run["calls"][number % 2] | {"function": f"MPI_{name}", "algorithm": name})
            run["handed_back"].append(run["handed_back"][0] | {"function": name, "reason": name, "why": name, "help": name})
            run["learned"].append(copy.deepcopy(run["learned"][0]) | {"function": name, "incumbent": name})
            run["learned"][-1]["candidates"][0]["name"] = name
            report["cells"].append(copy.deepcopy(report["cells"][0]) | {"collective": name, "buffers": name, "chosen": name})
            report["cells"][-1]["candidates"][0]["name"] = name
        report |= {"mpi": HOSTILE[0], "machine": HOSTILE[1]}
        bench = BENCH.replace("mpich", HOSTILE[1]).replace("a machine", HOSTILE[0])
        path = self.write("<b>run&.json", run)
        page, text = self.make(path, self.write("tune.json", report), self.write("bench.txt", bench))
        for name in HOSTILE[:6]:
            self.assertIn(f"MPI_{name}", page.text)
            self.assertIn(name, page.text.replace(f"MPI_{name}", ""))
        self.assertIn("<b>run&.json", page.text)
        self.assertNotIn("\x1b", text)
        self.assertNotIn("49", re.findall("{{.*?}}", page.text))

    def test_file_name_of_any_bytes(self):
        name = os.path.join(os.fsencode(self.folder), b"\xff\n.json")
        with open(name, "w", encoding="utf-8") as file:
            json.dump(stats(), file)
        self.assertEqual(coco("report", "-o", "page.html", os.fsdecode(name), cwd=self.folder).returncode, 0)
        self.assertIn("\N{REPLACEMENT CHARACTER}", Page((self.folder / "page.html").read_text(encoding="utf-8")).text)

    def test_large_numbers(self):
        large = stats()
        large["calls"][0] |= {"total_ns": 2 ** 64 - 1, "wait_ns": 2 ** 64 - 1, "calls": 1, "block_first": 2 ** 62, "block_last": 2 ** 63 - 1}
        large["calls"][1]["total_ns"] = 0
        large["learned"][0]["candidates"][0] |= {"time_ns": 2 ** 63, "low_ns": 2 ** 64 - 1, "high_ns": 0}
        self.check_figures(self.make(self.write("run.json", large))[0], 6)


# From normal vision to that of people without red, green and blue cones: Machado, Oliveira, Fernandes, A Physiologically-based
# Model for Simulation of Color Vision Deficiency, 2009.
VISIONS = {"all": numpy.eye(3),
           "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
           "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
           "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]}


def light_of(color):
    """Linear red, green and blue of #rrggbb."""
    values = numpy.array([int(color[at:at + 2], 16) / 255 for at in (1, 3, 5)])
    return numpy.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def oklab(light):
    """Coordinates whose distances are about as large as the differences that people see."""
    cones = numpy.array([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
                         [0.0883024619, 0.2817188376, 0.6299787005]]) @ numpy.clip(light, 0, 1)
    return numpy.array([[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
                        [0.0259040371, 0.7827717662, -0.8086757660]]) @ numpy.cbrt(cones)


def contrast(one, other):
    darker, lighter = sorted(light_of(color) @ [0.2126, 0.7152, 0.0722] for color in (one, other))
    return (lighter + 0.05) / (darker + 0.05)


class Colors(unittest.TestCase):
    def differ(self, theme, names, least):
        for vision, matrix in VISIONS.items():
            seen = {name: oklab(numpy.array(matrix) @ light_of(theme[name])) for name in names}
            for one, other in itertools.combinations(names, 2):
                with self.subTest(vision=vision, one=one, other=other):
                    self.assertGreater(numpy.linalg.norm(seen[one] - seen[other]), least)

    def test_any_colour_vision(self):
        for theme in (colors.LIGHT, colors.DARK):
            self.differ(theme, [*colors.SERIES[:4], colors.INK], 0.13)
            self.differ(theme, [*colors.SERIES, colors.INK], 0.07)
            self.differ(theme, [colors.WAITING, colors.COPYING, colors.LIBRARY], 0.08)

    def test_contrast(self):
        for theme in (colors.LIGHT, colors.DARK):
            for name in (colors.INK, colors.MUTED):
                self.assertGreater(contrast(theme[name], theme[colors.PAPER]), 4.5)
            for name in colors.SERIES:
                self.assertGreater(contrast(theme[name], theme[colors.PAPER]), 3)

    def test_each_colour_has_one_name(self):
        self.assertEqual(len(set(colors.LIGHT.values())), len(colors.LIGHT))
        self.assertEqual(set(colors.LIGHT), set(colors.DARK))


class Browser(Folder):
    """What Chromium makes of pages that have all kinds of sections. It takes long to start, so it starts once: with a window of frames,
    each with a page."""
    FRAMES = {  # name: page, left, top, width, height, colour scheme
        "light": ("shown.html", 0, 0, 1400, 3000, "light"), "dark": ("shown.html", 0, 3000, 1400, 3000, "dark"),
        "narrow": ("shown.html", 1400, 0, 400, 7000, "light"),
        # Below the picture.
        "wide probe": ("probe.html", 0, 7000, 1400, 900, "light"), "narrow probe": ("probe.html", 1400, 7000, 400, 900, "light"),
        "worse": ("worse.html", 0, 7900, 400, 900, "light")}
    WINDOW = 1800, 7000

    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory(prefix="coco-report-")
        cls.addClassCleanup(place.cleanup)
        folder = pathlib.Path(place.name)
        cls.write_pages(folder)
        frames = "".join(f'<iframe src="{page}" style="position:absolute;left:{left}px;top:{top}px;width:{width}px;height:{height}px;border:0;'
                         f'color-scheme:{scheme}"></iframe>' for page, left, top, width, height, scheme in cls.FRAMES.values())
        (folder / "frames.html").write_text(f"<!DOCTYPE html><html><body>{frames}</body></html>", encoding="utf-8")
        cls.browse(folder)

    @staticmethod
    def write_pages(folder):
        def write(name, content):
            path = folder / name
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
            return str(path)

        measured = [write("tune.json", tune()), write("bench.txt", BENCH)]
        shown = report.make([*measured, str(RESULTS / "espresso-2-ranks.json")])
        write("shown.html", shown)
        harm = '<script>wrong()</script><img src="http://127.0.0.1:9/x.png"><style>@import "http://127.0.0.1:9/x.css";</style>'
        write("worse.html", shown.replace("</body>", f"{harm}</body>"))
        long_name = stats()
        long_name["calls"][0]["function"] = "MPI_" + 300 * "x"
        probe = report.make([write("run.json", long_name), *measured])
        probe = re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", probe).replace("<details>", "<details open>")
        says = "<script>console.log(`is ${innerWidth}, needs ${document.documentElement.scrollWidth}`)</script>"
        write("probe.html", probe.replace("</body>", f"{says}</body>"))

    @classmethod
    def browse(cls, folder):
        """Keeps the picture, and the lines that pages wrote to the console."""
        shot = folder / "shot.png"
        result = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                                 "--enable-logging=stderr", f"--user-data-dir={folder}/profile", f"--window-size={cls.WINDOW[0]},{cls.WINDOW[1]}",
                                 f"--screenshot={shot}", f"file://{folder}/frames.html"],
                                capture_output=True, text=True, timeout=120, check=False)
        if result.returncode != 0 or not shot.exists():
            raise AssertionError(result.stderr)
        cls.console = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
        with PIL.Image.open(shot) as picture:
            red, green, blue = (numpy.asarray(picture.getchannel(name), numpy.uint32) for name in "RGB")
        cls.pixels = red << 16 | green << 8 | blue  # as #rrggbb

    def console_of(self, *pages):
        return [line for line in self.console if any(f"/{page}" in line for page in pages)]

    def test_console_is_heard(self):
        """Otherwise the next test would prove nothing."""
        for refused in ("script", "x.png", "x.css"):
            heard = [line for line in self.console_of("worse.html") if refused in line and "Content Security Policy" in line]
            self.assertTrue(heard, refused)

    def test_pages_are_silent(self):
        self.assertEqual([line for line in self.console if line not in self.console_of("worse.html", "probe.html")], [])

    def check_picture(self, pixels, theme):
        """Paper in the corner, and the colours of plots in each half of the picture."""
        def pixels_of(name, part):
            return numpy.count_nonzero(part == int(theme[name][1:], 16))
        self.assertEqual(pixels_of(colors.PAPER, pixels[:5, :5]), 25)
        for half in (pixels[:len(pixels) // 2], pixels[len(pixels) // 2:]):
            self.assertGreater(pixels_of(colors.INK, half), 500)
        for name in (colors.WAITING, colors.COPYING, colors.LIBRARY, *colors.SERIES[:2]):
            self.assertGreater(pixels_of(name, pixels), 50, name)

    def test_shown(self):
        self.assertEqual(self.pixels.shape, self.WINDOW[::-1])
        for name, theme in (("light", colors.LIGHT), ("dark", colors.DARK), ("narrow", colors.LIGHT)):
            with self.subTest(name):
                _, left, top, width, height, _ = self.FRAMES[name]
                self.check_picture(self.pixels[top:top + height, left:left + width], theme)

    def test_nothing_is_wider_than_the_window(self):
        for width in (400, 1400):
            self.assertIn(f"is {width}, needs {width}", "".join(self.console_of("probe.html")))


if __name__ == "__main__":
    unittest.main()
