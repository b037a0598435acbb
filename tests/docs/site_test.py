#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the site of the pages, and looks at it: titles, navigation, links, search, and how wide a browser makes it.

usage: site_test.py SOURCES
"""
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

SOURCES = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
import pages  # noqa: E402

LIMIT_S = 300
CHROMIUM = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
WINDOW, NARROW = 1400, 400  # pixels
WIDTHS = (NARROW, WINDOW)
# Loads each page of a list into a frame, gives that one width after the other, and writes how wide the page is there.
RULER = """<!DOCTYPE html><pre></pre><iframe style="border: 0; height: 800px"></iframe><script>
const frame = document.querySelector("iframe"), left = %s;
frame.onload = () => {
    const [page, widths] = left[0];
    if (!frame.src.endsWith(page)) return;
    for (const width of widths) {
        frame.style.width = width + "px";
        const is_so_wide = frame.offsetWidth == width && frame.contentWindow.innerWidth == width;
        const line = [page, is_so_wide ? width : null, frame.contentDocument.documentElement.scrollWidth];
        document.querySelector("pre").append(JSON.stringify(line) + "\\n");
    }
    left.shift();
    next();
};
function next() {
    if (left.length) frame.src = left[0][0];
}
next();
</script>"""


class Page(html.parser.HTMLParser):
    """What a page has: its title, its first heading, the ids, what it links to, and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.texts, self.open, self.ids, self.links, self.loads = {"title": "", "h1": ""}, [], set(), [], []
        self.feed(path.read_text(encoding="utf-8"))
        self.title, self.heading = (self.texts[name].replace("#", "").replace("\u00b6", "").strip() for name in ("title", "h1"))

    def handle_starttag(self, tag, attributes):
        has = dict(attributes)
        self.ids |= {has["id"]} if "id" in has else set()
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
        elif tag == "link" and has.get("rel") != "canonical":
            self.loads.append(has["href"])
        elif tag in ("script", "img", "iframe") and has.get("src"):
            self.loads.append(has["src"])
        if tag in self.texts and not self.texts[tag]:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in self.open:
            self.open.remove(tag)

    def handle_data(self, data):
        for tag in self.open:
            self.texts[tag] += data


def make(sources, folder):
    return subprocess.run([sources / "scripts/make_site", folder], capture_output=True, text=True, timeout=LIMIT_S, check=False)


def browse(page, folder, *words):
    """Returns: the page as the browser has it when its scripts have run. No script may have complained."""
    done = subprocess.run([*CHROMIUM, "--allow-file-access-from-files", "--enable-logging=stderr", f"--user-data-dir={folder}/profile", "--virtual-time-budget=60000", "--dump-dom", *words, page],
                          capture_output=True, text=True, timeout=LIMIT_S, check=True)
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not complaints, complaints
    return done.stdout


def first_heading(page):
    text = re.search(r"^# (.*)", (SOURCES / page).read_text(encoding="utf-8"), re.M)[1]
    return text.replace("`", "")


def is_elsewhere(address):
    return bool(urllib.parse.urlsplit(address).scheme) or address.startswith("//")


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="coco-site-")
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.site = cls.folder / "site"
        done = make(SOURCES, cls.site)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.read = {path.relative_to(cls.site).as_posix(): Page(path) for path in cls.site.rglob("*.html")}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_titles(self):
        for name in pages.pages(SOURCES):
            page = self.read[name.replace(".md", ".html")]
            self.assertEqual(page.heading, first_heading(name), name)
            self.assertTrue(page.title.startswith(first_heading(name)), f"{name}: {page.title}")
        for name, page in self.read.items():
            self.assertNotEqual(page.title, "", name)

    def test_navigation(self):
        """The start leads to all pages."""
        links = {link.split("#")[0] for link in self.read["README.html"].links}
        names = {name.replace(".md", ".html") for name in pages.pages(SOURCES)} - {"README.html"}
        self.assertEqual({name for name in names if name not in links}, set())
        self.assertIn("README.html", self.read["index.html"].links)

    def test_links(self):
        """All that a page leads to or loads is a file of the site, and an anchor is in it."""
        for name, page in self.read.items():
            for link in filter(lambda link: not is_elsewhere(link), page.links + page.loads):
                path, _, anchor = link.partition("#")
                path = urllib.parse.unquote(path.partition("?")[0])
                target = (self.site / name).parent / path if path else self.site / name
                self.assertTrue(target.is_file(), f"{name}: {link}")
                found = self.read.get(target.resolve().relative_to(self.site.resolve()).as_posix())
                self.assertTrue(not anchor or found is None or anchor in found.ids, f"{name}: {link}")

    def test_nothing_from_elsewhere(self):
        for name, page in self.read.items():
            self.assertEqual([address for address in page.loads if is_elsewhere(address)], [], name)
        for path in self.site.rglob("*.css"):
            self.assertNotRegex(path.read_text(encoding="utf-8"), r"(url\(|@import)\s*['\"]?(https?:)?//", path.name)

    def test_files_are_shown(self):
        shown = (self.site / "files/lib/algorithms/morton.cc.html").read_text(encoding="utf-8")
        self.assertIn("SPDX-License-Identifier", shown)
        self.assertIn("files/lib/algorithms/morton.cc.html", " ".join(self.read["docs/algorithms.html"].links))
        self.assertIn("2-cores.txt.html", " ".join(self.read["files/bench/results.html"].links))

    @unittest.skipUnless(shutil.which("chromium"), "chromium is not installed")
    def test_search(self):
        """From the disk, as a user without a server has it."""
        shown = browse(f"file://{self.site}/search.html?q=hidepid", self.folder)
        self.assertIn("docs/containers.html", shown)
        results = re.search(r'<div id="search-results">.*', shown, re.S)[0]
        self.assertIn(first_heading("docs/containers.md"), results)
        nothing = browse(f"file://{self.site}/search.html?q=nosuchwordanywhere", self.folder)
        self.assertIn("did not match any documents", nothing)

    @unittest.skipUnless(shutil.which("chromium"), "chromium is not installed")
    def test_picture(self):
        """The start is not blank, in frames of each width, which one picture has beside each other."""
        lefts, height = [sum(WIDTHS[:number]) for number in range(len(WIDTHS))], 1000
        frames = self.site / "frames.html"
        frames.write_text("<!DOCTYPE html>" + "".join(
            f'<iframe src="README.html" style="position: absolute; left: {left}px; top: 0; width: {width}px; height: {height}px; border: 0"></iframe>'
            for left, width in zip(lefts, WIDTHS)), encoding="utf-8")
        picture = self.folder / "picture.png"
        try:
            done = subprocess.run([*CHROMIUM, f"--user-data-dir={self.folder}/profile", f"--window-size={sum(WIDTHS)},{height}", "--hide-scrollbars",
                                   f"--screenshot={picture}", f"file://{frames}"],
                                  capture_output=True, text=True, timeout=LIMIT_S, check=False)
        finally:
            frames.unlink()
        self.assertEqual(done.returncode, 0, done.stderr)
        import PIL.Image
        with PIL.Image.open(picture) as shot:
            grey = shot.convert("L")
        for left, width in zip(lefts, WIDTHS):
            part = grey.crop((left, 0, left + width, height))
            dark = sum(part.histogram()[:100])
            # Letters and a plot on light paper.
            self.assertGreater(dark, 0.01 * width * height, width)
            self.assertLess(dark, 0.3 * width * height, width)

    @unittest.skipUnless(shutil.which("chromium"), "chromium is not installed")
    def test_width(self):
        """No page is wider than its window: what is wide scrolls within the page."""
        files = ["files/lib/algorithms/morton.cc.html", "files/bench/results.html"]
        widths = {name: list(WIDTHS) for name in [*(name.replace(".md", ".html") for name in pages.pages(SOURCES)), *files]}
        widths["docs/policy.html"] += [600, 800, 1000, 1250, 1350, 1920]
        asked = [[name, width] for name, all_of_it in widths.items() for width in all_of_it]
        too_wide = self.site / "too-wide.html"
        too_wide.write_text('<p style="width: 900px">x</p>', encoding="utf-8")
        ruler = self.site / "ruler.html"
        ruler.write_text(RULER % json.dumps([*widths.items(), ("too-wide.html", [NARROW])]), encoding="utf-8")
        try:
            shown = browse(f"file://{ruler}", self.folder, "--window-size=2000,1000")
        finally:
            ruler.unlink()
            too_wide.unlink()
        found = [json.loads(line) for line in re.findall(r"^\[.*\]$", re.search(r"<pre>(.*?)</pre>", shown, re.S)[1], re.M)]
        self.assertEqual([line[:2] for line in found[:-1]], asked)
        self.assertGreater(found.pop()[2], 900)
        self.assertEqual([line for line in found if line[2] > line[1]], [])


class Wrong(unittest.TestCase):
    """What must not pass."""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="coco-site-")
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def test_broken_link_and_lost_page(self):
        copy = self.folder / "sources"
        shutil.copytree(SOURCES / "scripts", copy / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        (copy / "docs").mkdir()
        for name in ("README.md", "docs/README.md", "docs/heap.md", "meson.build"):
            shutil.copy(SOURCES / name, copy / name)
        with open(copy / "docs/heap.md", "a", encoding="utf-8") as page:
            page.write("\n[broken](no-such-page.md)\n")
        (copy / "docs/lost.md").write_text("# Lost\n", encoding="utf-8")
        done = make(copy, self.folder / "site")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"heap\.md.*no-such-page\.md")
        self.assertRegex(done.stderr, r"lost\.md.*isn't included in any toctree")
        self.assertFalse((self.folder / "site").exists())

    def test_strange_folder(self):
        (self.folder / "precious").write_text("x", encoding="utf-8")
        done = make(SOURCES, self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("holds no site", done.stderr)
        self.assertTrue((self.folder / "precious").exists())


if __name__ == "__main__":
    if subprocess.run(["/usr/bin/python3", "-c", "import sphinx, myst_parser, furo, PIL"], capture_output=True, check=False).returncode != 0:
        print("skipped: Sphinx, its parser for Markdown, the theme or Pillow is not installed (scripts/bootstrap --site)")
        sys.exit(77)
    unittest.main()
