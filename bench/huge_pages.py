# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's settings of huge pages, for benchmarks that go through them as root."""
ENABLED = "/sys/kernel/mm/transparent_hugepage/enabled"
SETTINGS = ["always", "madvise", "never"]


def in_force():
    with open(ENABLED, encoding="ascii") as file:
        return file.read().split("[")[1].split("]")[0]


def _put(word):
    with open(ENABLED, "w", encoding="ascii") as file:
        file.write(word)


def each(words):
    """Yields each setting while it is in force, and puts the old one back at the end; without words that alone."""
    found = in_force()
    try:
        for word in words or [found]:
            if words:
                _put(word)
            yield word
    finally:
        if words:
            _put(found)
