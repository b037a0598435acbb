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

import arm64
import mpis

# Of the tests on an MPI those that are run on an emulated processor, where each takes some ten times as long: every way of a
# call, several nodes, and what relies on the kernel most.
EMULATED = [
    "family_test 1 ranks default",
    "collectives_test 2 ranks default",
    "collectives_test 3 ranks naive",
    "random_test 2 ranks default",
    "random_test 3 ranks morton",
    "random_test 4 ranks eager",
    "random_test 4 ranks numa_morton",
    "forced naive",
    "forced morton",
    "forced eager",
    "errors_test 2 ranks default",
    "bottom_test 3 ranks default",
    "refusals_test 2 ranks default",
    "fork_test 2 ranks default",
    "requests_test 3 ranks default",
    "comms_test 2 ranks default",
    "meetings_test 4 ranks 1 threads",
    "threads_test 2 ranks default",
    "truncate_test 3 ranks eager",
    "overlay_test 2 ranks syscall",
    "overlay_test 3 ranks libc",
    "memory_test with heap limit of 4 MiB",
    "memory_test with no shared heap",
    "neighbor_test 4 ranks on 1,domains=2 nodes default",
    "neighbor_test 4 ranks on 2 nodes aggregate",
    "random_test 4 ranks on 4 nodes default",
    "random_test 4 ranks leaders of 2 nodes",
    "collectives_test 4 ranks on 2 nodes leader",
]

# The suites that need no MPI and are not for --quick, as they take most of the time.
LONG = ["simulate", "proof", "pages", "packaging"]

SANITIZED = "build/sanitized"


def succeeds(*command, **more):
    return subprocess.run(command, check=False, **more).returncode == 0


def build(folder, *options, targets=(), setup=(), **more):
    """Configures a build folder, if it is none yet, with further words, and builds. Returns: whether that went well."""
    ready = os.path.exists(f"{folder}/build.ninja")
    configured = succeeds("meson", "configure", folder, *options) if ready else \
        succeeds("meson", "setup", folder, *options, *setup, **more)
    return configured and succeeds("ninja", "-C", folder, "--quiet", *targets)


def ahead():
    """Whether standard headers are compiled ahead."""
    done = subprocess.run(["scripts/ahead"], check=True, capture_output=True, text=True)
    return f"-Db_pch={done.stdout.strip()}"


def run_tests(folder, *words):
    """Runs all tests, or as the words say. Returns: the results, as Meson logged them."""
    log = f"{folder}/meson-logs/testlog.json"
    if os.path.exists(log):
        os.remove(log)
    print(f"== tests of {folder}", flush=True)
    succeeds("meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs", *words)
    if not os.path.exists(log):
        return [{"name": f"{folder}: meson test did not run", "result": "ERROR"}]
    with open(log, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def result_of(name, good):
    return {"name": name, "result": "OK" if good else "FAIL"}


def sanitizer_options():
    """What makes a build folder check itself. The runtime is a library, so that programs without it can preload it."""
    runtime = subprocess.run(["clang", f"-print-file-name=libclang_rt.asan-{os.uname().machine}.so"], check=True,
                             capture_output=True, text=True).stdout.strip()
    links = f"-shared-libasan -Wl,-rpath,{os.path.dirname(runtime)}"
    return ["-Db_sanitize=address,undefined", "-Dchecks=dear", "-Dbuildtype=plain", "-Doptimization=1",
            f"-Dc_link_args={links}",
            f"-Dcpp_link_args={links}", "-Dcpp_args=-gline-tables-only -fno-sanitize-recover=all -fno-omit-frame-pointer"]


def test_sanitized():
    """The tests that need no MPI, with the address and undefined behaviour sanitizers, and by the other compiler."""
    good = build(SANITIZED, "-Dtests=true", ahead(), *sanitizer_options(), targets=["libcoco.so", "meson-test-prereq"],
                 env={**os.environ, "CC": "clang", "CXX": "clang++"})
    compiles = [result_of("compiles with clang and its sanitizers", good)]
    return compiles + run_tests(SANITIZED) if good else compiles


def check_tidy():
    print("== clang-tidy", flush=True)
    return result_of("clang-tidy finds nothing", succeeds("scripts/check_tidy", "build"))


def test_mpi(name, is_first):
    """The tests on one MPI. Benchmarks that no test runs are compiled for the first one only."""
    try:
        folder = f"build/{mpis.find(name).name}"
    except mpis.NoMpi as why:
        return [{"name": str(why), "result": "ERROR"}]
    sanitized = os.path.abspath(SANITIZED) if name == mpis.DEBIAN[0] else ""
    targets = [] if is_first else ["meson-test-prereq"]
    if not build(folder, f"-Dmpi={name}", "-Dbench=true", f"-Dsanitized={sanitized}", targets=targets):
        return [{"name": f"the tests on {name} do not compile", "result": "ERROR"}]
    return run_tests(folder)


def test_arm64():
    """The tests without MPI and a selection of those with MPI, on an emulated processor."""
    try:
        arm64.prepare()
    except arm64.NoArm64 as why:
        return [result_of(f"arm64: {why}", False)]
    patience = ["--timeout-multiplier", "4"]
    library = f"{arm64.FOLDER}/library"
    if not build(library, "-Dtests=true", setup=["--cross-file", arm64.CROSS_FILE]):
        return [result_of("libcoco does not compile for arm64", False)]
    results = run_tests(library, *patience)
    for name in mpis.DEBIAN:
        folder = f"{arm64.FOLDER}/{name}"
        if build(folder, f"-Dmpi={mpis.ARM64}{name}", f"-Dproduct={library}", setup=["--cross-file", arm64.CROSS_FILE]):
            results += run_tests(folder, *patience, *EMULATED)
        else:
            results.append(result_of(f"the tests on {name} do not compile for arm64", False))
    return results


def test_all(options):
    if options.arm64:
        return test_arm64()
    # The last one is the default, which an older build folder does not know.
    if not build("build", "-Dtests=true", "-Dbench=true", ahead(), "-Dpkgconfig.relocatable=true"):
        return [{"name": "libcoco does not compile", "result": "ERROR"}]
    if options.quick:
        return run_tests("build", *[word for suite in LONG for word in ("--no-suite", suite)])
    results = run_tests("build")
    results.append(check_tidy())
    results += test_sanitized()
    names = options.mpi or mpis.DEBIAN
    for name in names:
        results += test_mpi(name, is_first=name == names[0])
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
    parser.add_argument("--quick", action="store_true", help="only the tests that need no MPI, without long proofs, simulated clusters, the site, the pages of coco report and packages")
    parser.add_argument("--mpi", action="append", help="on this MPI, instead of on Debian's two")
    parser.add_argument("--arm64", action="store_true", help="on an emulated ARM processor instead")
    options = parser.parse_args()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    return 0 if report(test_all(options)) else 1


if __name__ == "__main__":
    sys.exit(main())
