# SPDX-License-Identifier: BSD-3-Clause
"""The commands on the Markdown pages: fenced blocks of shell, and what is wrong with them that can be told without running them."""
import dataclasses
import pathlib
import re
import shlex
import subprocess
import textwrap

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
ENDS = {"|", "||", "&&", ";", ">", "&"}
OPTION = re.compile(r"-(-\w[\w-]*|\w)(=.*)?")
OF_SOURCES = re.compile(r"(scripts|bench|tests|packaging)/[\w./-]+")


@dataclasses.dataclass(frozen=True)
class Command:
    """A line of a block; lines that end with a backslash are one. `text` has no comment."""
    page: str
    line: int
    text: str

    @property
    def where(self):
        return f"{self.page}:{self.line}"


@dataclasses.dataclass(frozen=True)
class Block:
    page: str
    line: int  # of its first line, in the page
    language: str
    text: str

    def commands(self):
        number, whole, found = self.line, "", []
        for line in self.text.splitlines():
            number, whole = number + 1, whole + line
            if whole.endswith("\\"):
                whole = whole[:-1]
                continue
            text = re.sub(r"(^|\s)#.*", "", re.sub(r"\s+", " ", whole)).strip()
            if text:
                found.append(Command(self.page, number - 1, text))
            whole = ""
        return found


def pages(sources):
    """All Markdown pages, as paths from the root of the sources."""
    found = [*sources.glob("*.md"), *sources.glob("docs/**/*.md")]
    return sorted(path.relative_to(sources).as_posix() for path in found)


def for_users(sources):
    """README.md and the pages that docs/README.md lists for users."""
    part = (sources / "docs/README.md").read_text(encoding="utf-8").split("## For users")[1].split("\n## ")[0]
    return ["README.md", *(f"docs/{name}" for name in re.findall(r"\]\(([\w-]+\.md)\)", part))]


def blocks(sources, page):
    text = (sources / page).read_text(encoding="utf-8")
    return [Block(page, text.count("\n", 0, match.start()) + 2, match[2], textwrap.dedent(match[3])) for match in FENCE.finditer(text)]


def unfenced(text):
    """Lines of blocks that are indented instead of fenced: commands in them would not be found."""
    outside = FENCE.sub("\n", text).splitlines()
    return [line for before, line in zip(["", *outside], outside) if line.startswith("    ") and not before.strip()]


def syntax_error(block):
    """What the shell says against a block, without running it; "" if nothing."""
    return subprocess.run(["bash", "-n"], input=block.text, text=True, capture_output=True, check=False).stderr.strip()


class Names:
    """The names that commands may use: of the coco command, its settings, and the scripts."""

    def __init__(self, described, sources):
        self.sources = sources
        self.settings = {setting["name"] for setting in described["settings"]}
        self.options = {command["name"]: {name for option in command["options"] for name in option["names"]}
                        for command in described["commands"]}
        self.own_options = {name for option in described["options"] for name in option["names"]}

    def wrong(self, text):
        """What is wrong with a command's names, a line each."""
        inner = re.findall(r"\$\(([^()]*)\)", text)
        found = [line for part in inner for line in self.wrong(part)]
        words = shlex.split(re.sub(r"\$\([^()]*\)", "", text))
        found += [f"there is no setting {name}" for name in re.findall(r"\bCOCO_[A-Z_]+\b", text) if name not in self.settings]
        for at, word in enumerate(words):
            if pathlib.PurePath(word).name == "coco" and ("/" not in word or word.endswith(("bin/coco", "build/coco"))):
                found += self.wrong_coco(words[at + 1:])
            elif OF_SOURCES.fullmatch(word):
                found += self.wrong_script(word, words[at + 1:])
                break  # further words may be its values
        return found

    def wrong_coco(self, words):
        if not words or words[0] in self.own_options:
            return []
        if words[0] not in self.options:
            return [f"there is no command coco {words[0]}"]
        own = []  # until the program, whose words are its own
        for word in words[1:]:
            if word in ENDS or (words[0] in ("run", "doctor") and not word.startswith("-")):
                break
            own += [word.split("=")[0]] if OPTION.fullmatch(word) else []
        return [f"coco {words[0]} has no option {word}" for word in own if word not in self.options[words[0]]]

    def wrong_script(self, name, words):
        path = self.sources / name
        if not path.exists():
            return [f"there is no {name}"]
        if not path.is_file():
            return []
        helped = "".join(file.read_text(encoding="utf-8") for file in {path, *path.parent.glob("*.py")})
        own = []
        for word in words:
            if word in ENDS or word == "--":
                break
            own += [word.split("=")[0]] if word.startswith("--") else []
        return [f"{name} has no option {word}" for word in own if f'"{word}"' not in helped and f" {word}" not in helped]
