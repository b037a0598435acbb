#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What another user can reach of a job: nothing.

usage: strangers.py MPI LIBCOCO COCO VICTIM SCRIPTS [WITHIN...]     needs root: else exit status 77
       strangers.py --attempt PID                                 tries to reach a process, and prints what it could, a line each

A job of two ranks runs as one user. While it stands still, another user tries all ways to its memory and descriptors. The same is
tried as the job's own user, so that an attempt which cannot succeed shows. WITHIN: words before the program's own, of a program that
takes memfd away.
"""
import ctypes
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
OWNER, STRANGER = 60001, 60002
RANKS = 2
PATIENCE_S = 60
PIDFD_GETFD = 438
PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
AS_USER = "setpriv --reuid={0} --regid={0} --clear-groups env -i PATH=/usr/bin:/bin"

libc = ctypes.CDLL(None, use_errno=True)


# What the attempts are. Each returns whether it has reached something of the process.

def opens(path):
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        return True
    except OSError:
        return False


def lists(path):
    try:
        return bool(os.listdir(path))
    except OSError:
        return False


def opens_heap(pid):
    """By number, as a name that cannot be listed may yet be opened."""
    return any(opens(f"/proc/{pid}/fd/{number}") for number in range(1024))


def reads_memory(pid):
    class Piece(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]

    memory = ctypes.create_string_buffer(8)
    here, there = Piece(ctypes.addressof(memory), 8), Piece(ctypes.addressof(memory), 8)
    # An address that may be mapped there or not: who may not read gets EPERM before that matters.
    done = libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    return done >= 0 or ctypes.get_errno() == 14  # EFAULT


def takes_descriptor(pid):
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    took = [libc.syscall(PIDFD_GETFD, handle, number, 0) >= 0 for number in range(1024)]
    return any(took)


def traces(pid):
    if libc.ptrace(PTRACE_SEIZE, pid, None, None) != 0:
        return False
    libc.ptrace(PTRACE_DETACH, pid, None, None)
    return True


def signals(pid):
    try:
        os.kill(pid, 0)
        return True
    except OSError:
        return False


ATTEMPTS = {
    "list /proc/PID/fd": lambda pid: lists(f"/proc/{pid}/fd"),
    "open /proc/PID/fd/N": opens_heap,
    "list /proc/PID/map_files": lambda pid: lists(f"/proc/{pid}/map_files"),
    "open /proc/PID/mem": lambda pid: opens(f"/proc/{pid}/mem"),
    "open /proc/PID/maps": lambda pid: opens(f"/proc/{pid}/maps"),
    "open /proc/PID/environ": lambda pid: opens(f"/proc/{pid}/environ"),
    "read its memory": reads_memory,
    "take its descriptors": takes_descriptor,
    "trace it": traces,
    "send it a signal": signals,
}


def attempts(pid):
    return {what for what, reaches in ATTEMPTS.items() if reaches(pid)}


# The test around them.

class Failed(Exception):
    """Something is open, or the test itself went wrong."""


def require(condition, what):
    if not condition:
        raise Failed(what)


def run_as(user, *command, **more):
    return subprocess.run([*AS_USER.format(user).split(), *command], check=False, capture_output=True, text=True, timeout=PATIENCE_S,
                          **more)


def wait_for(condition, what, process):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        require(process.poll() is None, f"the job has ended before {what}")
        require(time.monotonic() < end, f"no {what} after {PATIENCE_S} s")
        time.sleep(0.02)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def heap_descriptors(pid):
    """(number, facts) of each descriptor of a rank's shared memory."""
    for number in os.listdir(f"/proc/{pid}/fd"):
        link = f"/proc/{pid}/fd/{number}"
        if "coco" in os.path.basename(os.readlink(link)):
            yield number, os.stat(link)


def check_descriptors(pid):
    found = list(heap_descriptors(pid))
    require(found, f"process {pid} has no shared heap")
    for number, facts in found:
        require(facts.st_uid == OWNER and stat.S_IMODE(facts.st_mode) == 0o600,
                f"descriptor {number} of process {pid} is of user {facts.st_uid} with mode {stat.S_IMODE(facts.st_mode):o}")


def check_attempts(folder, pid):
    script = os.path.join(folder, "strangers.py")
    own = set(run_as(OWNER, "python3", "-B", script, "--attempt", str(pid)).stdout.splitlines())
    other = run_as(STRANGER, "python3", "-B", script, "--attempt", str(pid))
    require(other.returncode == 0, f"the stranger: {other.stderr}")
    require(not other.stdout, f"a stranger can: {other.stdout}")
    # Some kernels let not even the same user trace or map, but these it may everywhere.
    lacking = {"list /proc/PID/fd", "open /proc/PID/fd/N", "open /proc/PID/maps", "send it a signal"} - own
    require(not lacking, f"not even the job's own user can: {lacking}")


def check_names(before):
    """Nothing that has a name which others could open: no file, no socket."""
    files = [name for name in set(os.listdir("/dev/shm")) - before if "coco" in name]
    require(not files, f"/dev/shm has {files}")
    sockets = re.findall(r"@coco\S*", read("/proc/net/unix"))
    require(not sockets, f"there are sockets {sockets}")


def check_setuid(folder, coco):
    """A program that runs with more rights than its user's takes no word of the environment."""
    copy = os.path.join(folder, "coco")
    shutil.copy(coco, copy)
    for mode, heeded in ((0o755, True), (0o4755, False)):
        os.chmod(copy, mode)
        done = run_as(OWNER, "env", "COCO_LOG=nonsense", copy, "info")
        require(("COCO_LOG=nonsense" in done.stderr) == heeded,
                f"coco with mode {mode:o} and a wrong setting: {done.stdout}{done.stderr}")


def job(folder, mpi, within):
    outer = [f"HOME={folder}/home", *(f"{name}={value}" for name, value in mpi.environment().items())]
    settings = [f"LD_PRELOAD={folder}/libcoco.so"]
    return subprocess.Popen([*AS_USER.format(OWNER).split(), *outer, mpi.launcher, "-n", str(RANKS), "env", *settings,
                             *within, f"{folder}/victim", folder], stdin=subprocess.DEVNULL, start_new_session=True, cwd=folder)


def look_at(folder, process, before):
    ready = [os.path.join(folder, f"ready.{rank}") for rank in range(RANKS)]
    wait_for(lambda: all(os.path.exists(name) and read(name) for name in ready), "rank that is ready", process)
    for name in ready:
        pid = int(read(name))
        check_descriptors(pid)
        check_attempts(folder, pid)
    check_names(before)
    with open(os.path.join(folder, "go"), "w", encoding="utf-8"):
        pass
    require(process.wait(PATIENCE_S) == 0, "the job failed")


def test(name, libcoco, coco, victim, scripts, *within):
    sys.path.insert(1, scripts)
    import mpis
    mpi = mpis.find(name, to_compile=False)
    with tempfile.TemporaryDirectory(prefix="coco-strangers-") as folder:
        os.chmod(folder, 0o755)  # what the job's user leaves open is not the question
        for source, copy in ((libcoco, "libcoco.so"), (victim, "victim"), (__file__, "strangers.py"), *((p, os.path.basename(p)) for p in within[:1])):
            shutil.copy(source, os.path.join(folder, copy))
            os.chmod(os.path.join(folder, copy), 0o755)
        os.mkdir(os.path.join(folder, "home"))
        os.chown(folder, OWNER, OWNER)
        os.chown(os.path.join(folder, "home"), OWNER, OWNER)
        before = set(os.listdir("/dev/shm"))
        process = job(folder, mpi, [os.path.join(folder, os.path.basename(p)) for p in within[:1]] + list(within[1:]))
        try:
            look_at(folder, process, before)
            check_setuid(folder, coco)
        finally:
            if process.poll() is None:
                process.terminate()  # the launcher ends its ranks
                process.wait()


def main():
    if sys.argv[1:2] == ["--attempt"]:
        print("".join(f"{what}\n" for what in sorted(attempts(int(sys.argv[2])))), end="")
        return 0
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    if os.geteuid() != 0:
        print("skipped: only root can be several users")
        return SKIPPED
    try:
        test(*sys.argv[1:])
    except Failed as why:
        print(f"FAILED: {why}")
        return 1
    print("nothing is open")
    return 0


if __name__ == "__main__":
    sys.exit(main())
