# SPDX-License-Identifier: BSD-3-Clause
"""Prints the stacks of a job's processes by gdb, for runs that passed their time limit."""
import os
import re
import subprocess
import time

LIMIT_S = 50  # for all processes together


def print_stacks(pids, program, enter=(), proc="/proc"):
    """Of those of `pids` that run one of the programs in the words `program`. enter: the words that run gdb where
    these process ids hold; proc: the /proc of that place, seen from here."""
    wanted = {os.path.basename(os.path.realpath(word)) for word in program}
    deadline = time.monotonic() + LIMIT_S
    for pid in pids:
        if time.monotonic() > deadline:
            print("---- no time for the stacks of more processes", flush=True)
            return
        try:
            name = os.path.basename(os.readlink(f"{proc}/{pid}/exe"))
        except OSError:
            continue
        if name in wanted:
            print(f"---- stacks of process {pid} ({name})", flush=True)
            print(stacks_of(pid, enter), flush=True)


def stacks_of(pid, enter):
    command = [*enter, "gdb", "-p", str(pid), "-batch", "-nx", "-ex", "thread apply all bt 25"]
    try:
        text = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no stacks: {error}"
    return "\n".join(line for line in text.splitlines() if re.match(r"#|Thread|no ", line))
