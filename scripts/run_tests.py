#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds both flavours and runs every test: the second half of scripts/test.

--quick runs the tests that need no MPI, of one flavour. Every test is bounded in time (its Meson timeout). The output
of failing tests is printed; the last line is `N passed, N failed`.
"""
import json
import os
import subprocess
import sys

FLAVOURS = ["mpich", "openmpi"]
MPI_SUITES = ["mpi", "io", "cluster", "interpose", "programs"]  # the others need no MPI: one flavour is enough


def run_flavour(flavour, suites, apart):
    """Runs the suites given (apart: all others). Returns: the results, as Meson logged them."""
    folder = f"build/{flavour}"
    log = f"{folder}/meson-logs/testlog.json"
    if os.path.exists(log):
        os.remove(log)
    words = [word for suite in suites for word in ("--no-suite" if apart else "--suite", suite)]
    print(f"== tests of {folder}{' without MPI' if apart else ''}", flush=True)
    subprocess.run(["meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs", *words], check=False)
    if not os.path.exists(log):
        return [{"name": f"{folder}: meson test did not run", "result": "ERROR"}]
    with open(log, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def compile_with_clang():
    """The library with the other compiler, where warnings are errors too. Returns: the result."""
    folder = "build/clang"
    ready = os.path.exists(f"{folder}/build.ninja")
    environment = {**os.environ, "CC": "clang", "CXX": "clang++"}
    setup = ["meson", "setup", folder, "-Dmpi=mpich", "-Doptimization=0"]
    print(f"== {folder}", flush=True)
    done = (ready or subprocess.run(setup, env=environment, check=False).returncode == 0) and \
        subprocess.run(["ninja", "-C", folder, "--quiet", "libcoco.so"], check=False).returncode == 0
    return {"name": "compiles with clang", "result": "OK" if done else "FAIL"}


def main():
    if sys.argv[1:] not in ([], ["--quick"]):
        sys.exit("usage: scripts/test [--quick]")
    quick = sys.argv[1:] == ["--quick"]
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    command = ["scripts/build", FLAVOURS[0] if quick else "all"]
    results = []
    if subprocess.run(command, check=False).returncode != 0:
        results.append({"name": " ".join(command), "result": "ERROR"})
    else:
        results += run_flavour(FLAVOURS[0], MPI_SUITES, apart=True)
        if not quick:
            results.append(compile_with_clang())
        for flavour in [] if quick else FLAVOURS:
            results += run_flavour(flavour, MPI_SUITES, apart=False)
    good = [r for r in results if r["result"] in ("OK", "EXPECTEDFAIL")]
    skipped = [r for r in results if r["result"] == "SKIP"]
    bad = [r for r in results if r not in good and r not in skipped]
    for what, some in (("skipped", skipped), ("FAILED", bad)):
        for result in some:
            print(f"{what}: {result['name']}")
    if not good and not bad:
        bad.append({"name": "no test ran"})
    print(f"{len(good)} passed, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
