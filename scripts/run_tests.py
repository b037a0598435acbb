#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds, and runs every test: the second half of scripts/test, which says what the words are.

Every test is bounded in time (its Meson timeout). The output of failing tests is printed; the last line is
`N passed, N failed`.
"""
import argparse
import json
import os
import subprocess
import sys

import mpis


def succeeds(*command, **more):
    return subprocess.run(command, check=False, **more).returncode == 0


def build(folder, *options, targets=(), **more):
    """Configures a build folder, if it is none yet, and builds. Returns: whether that went well."""
    ready = os.path.exists(f"{folder}/build.ninja")
    configured = succeeds("meson", "configure", folder, *options) if ready else \
        succeeds("meson", "setup", folder, *options, **more)
    return configured and succeeds("ninja", "-C", folder, "--quiet", *targets)


def run_tests(folder):
    """Returns: the results, as Meson logged them."""
    log = f"{folder}/meson-logs/testlog.json"
    if os.path.exists(log):
        os.remove(log)
    print(f"== tests of {folder}", flush=True)
    succeeds("meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs")
    if not os.path.exists(log):
        return [{"name": f"{folder}: meson test did not run", "result": "ERROR"}]
    with open(log, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def result_of(name, good):
    return {"name": name, "result": "OK" if good else "FAIL"}


def compile_with_clang():
    """The library with the other compiler, where warnings are errors too."""
    print("== build/clang", flush=True)
    return result_of("compiles with clang", build(
        "build/clang", "-Doptimization=0", targets=["libcoco.so"], env={**os.environ, "CC": "clang", "CXX": "clang++"}))


def test_mpi(name):
    """The tests on one MPI."""
    try:
        folder = f"build/{mpis.find(name).name}"
    except mpis.NoMpi as why:
        return [{"name": str(why), "result": "ERROR"}]
    if not build(folder, f"-Dmpi={name}", "-Dbench=true"):
        return [{"name": f"the tests on {name} do not compile", "result": "ERROR"}]
    return run_tests(folder)


def test_all(options):
    if not build("build", "-Dtests=true", "-Dbench=true"):
        return [{"name": "libcoco does not compile", "result": "ERROR"}]
    results = run_tests("build")
    if options.quick:
        return results
    results.append(compile_with_clang())
    for name in options.mpi or mpis.DEBIAN:
        results += test_mpi(name)
    return results


def report(results):
    """Prints what was skipped and what failed, and the verdict. Returns: whether all is well."""
    good = [r for r in results if r["result"] in ("OK", "EXPECTEDFAIL")]
    skipped = [r for r in results if r["result"] == "SKIP"]
    bad = [r for r in results if r not in good and r not in skipped]
    for what, some in (("skipped", skipped), ("FAILED", bad)):
        for result in some:
            print(f"{what}: {result['name']}")
    if not good and not bad:
        bad.append({"name": "no test ran"})
    print(f"{len(good)} passed, {len(bad)} failed")
    return not bad


def main():
    parser = argparse.ArgumentParser(prog="scripts/test")
    parser.add_argument("--quick", action="store_true", help="only the tests that need no MPI")
    parser.add_argument("--mpi", action="append", help="on this MPI, instead of on Debian's two")
    options = parser.parse_args()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    return 0 if report(test_all(options)) else 1


if __name__ == "__main__":
    sys.exit(main())
