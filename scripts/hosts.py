# SPDX-License-Identifier: BSD-3-Clause
"""Hosts made of Linux namespaces, and the network between them: what scripts/cluster is built on.

One process, the keeper, holds a cluster. Its child is the head: process 1 of a process-id namespace that all of the
cluster lives in, with the bridge in its network namespace. The hosts are children of the head in namespaces of their
own: process 1 of their own ids, host name, network (eth0, a wire to the bridge), IPC, mounts. So a cluster has no part
that outlives its head: no named namespace, no mount, no link, no file outside.

Who calls it: scripts/cluster. Needs root; Unavailable says why a machine cannot do it. One thread.
"""
import ctypes
import errno
import json
import os
import select
import signal
import socket
import subprocess
import time
import uuid

NEW_MOUNTS, NEW_NAME, NEW_IPC, NEW_IDS, NEW_NET = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
NEW_ALL = NEW_MOUNTS | NEW_NAME | NEW_IPC | NEW_IDS | NEW_NET
BIND, RECURSIVE, PRIVATE = 0x1000, 0x4000, 0x40000
SET_DEATH_SIGNAL, SET_NAME = 1, 15
PRIVATE_FOLDERS = ["/tmp", "/dev/shm"]  # each host has its own
DESK = "/tmp/.hosts"  # on the head: a file NAME.pid for each host with its process 1, and the agent
AGENT = DESK + "/agent"  # what launchers start in place of ssh; on hosts too, as Open MPI's daemons look for it
MOST_HOSTS = 250
START_LIMIT_S = 60
LACKING = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EINVAL, errno.ENOSPC)  # the machine lets us not
AGENT_TEXT = """#!/bin/sh
# Stands in for ssh: agent [options] HOST WORDS... The user, if any, is in CLUSTER_USER.
while :; do
    case "$1" in
        -[lpoi]) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
read -r pid <"${0%/*}/$1.pid" || exit 255
shift
enter="nsenter --target $pid --mount --uts --ipc --net --pid --"
[ -z "$CLUSTER_USER" ] ||
    enter="$enter setpriv --reuid=$CLUSTER_USER --regid=$CLUSTER_USER --clear-groups env HOME=/tmp"
exec $enter /bin/sh -c "$*"
"""

libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """This machine, or this user, cannot make a cluster."""


def kernel(function, *arguments):
    words = [word.encode() if isinstance(word, str) else ctypes.c_ulong(word) if word else None for word in arguments]
    if getattr(libc, function)(*words) != 0:
        number = ctypes.get_errno()
        what = " ".join(word for word in (function, *arguments) if isinstance(word, str))
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(what, where, kind=None, flags=0, options=None):
    kernel("mount", what, where, kind, flags, options)


def ip(lines, tool="ip"):
    done = subprocess.run([tool, "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode != 0:
        lacks = any(word in done.stderr for word in ("not permitted", "not supported", "Unknown device type"))
        raise OSError(errno.EPERM if lacks else errno.EIO, f"{tool}: {done.stderr.strip()}")


def die_with_parent():
    kernel("prctl", SET_DEATH_SIGNAL, signal.SIGKILL)


def address(index):  # the head is 0, host h0 is 1
    return f"10.77.0.{index + 1}"


def hardware_address(index):
    return f"02:00:0a:4d:00:{index + 1:02x}"


def neighbours(count, device):
    """Fixed entries: the kernel's table of learnt neighbours is small, and all namespaces share it."""
    return [f"neigh replace {address(i)} lladdr {hardware_address(i)} nud permanent dev {device}"
            for i in range(count + 1)]


def limit_of(device, mbit):
    return f"qdisc add dev {device} root tbf rate {mbit}mbit burst 64kb limit 4mb"


def bind_file(text, where):
    """Puts a file of our own over one of the machine's, in this mount namespace. It stays: the kernel would not let
    a host put its own over one that is unlinked."""
    source = f"{DESK}/{os.path.basename(where)}.text"
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    mount(source, where, flags=BIND)


def bind_open(descriptor, where):
    mount(f"/proc/self/fd/{descriptor}", where, flags=BIND | RECURSIVE)


def furnish(name, hosts, shares):
    """Gives the namespaces that this process has just got their name and their mounts."""
    socket.sethostname(name)
    mount("none", "/", flags=RECURSIVE | PRIVATE)
    shared = {path: os.open(path, os.O_PATH) for path in shares}
    groups = os.open("/sys/fs/cgroup", os.O_PATH) if os.path.isdir("/sys/fs/cgroup") else None
    for folder in PRIVATE_FOLDERS:
        mount("tmpfs", folder, "tmpfs", options="mode=1777")
    mount("proc", "/proc", "proc")
    mount("sysfs", "/sys", "sysfs")  # its class/net shows this network namespace
    if groups is not None:
        bind_open(groups, "/sys/fs/cgroup")
    for path, descriptor in shared.items():
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "a", encoding="utf-8").close()
        bind_open(descriptor, path)
    os.mkdir(DESK)
    with open(AGENT, "w", encoding="utf-8") as file:
        file.write(AGENT_TEXT)
    os.chmod(AGENT, 0o755)
    names = ["head"] + [f"h{i}" for i in range(hosts)]
    lines = ["127.0.0.1 localhost"] + [f"{address(i)} {host}" for i, host in enumerate(names)]
    bind_file("\n".join(lines) + "\n", "/etc/hosts")
    bind_file(f"{uuid.uuid4()}\n", "/proc/sys/kernel/random/boot_id")


def stand_by():
    """What a process 1 does all its life. The kernel reaps the children of one that ignores their end, from then on."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    while True:
        signal.pause()


def close_all(but=None):
    null = os.open("/dev/null", os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    os.closerange(3, but or 1 << 20)
    if but:
        os.closerange(but + 1, 1 << 20)


def end_of(child):
    """Waits for a child's end. Returns: how it ended, in words. Its id stays taken."""
    end = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    return f"ended with status {end.si_status}" if end.si_code == os.CLD_EXITED else f"was killed by signal {end.si_status}"


def say(pipe, **words):
    os.write(pipe, json.dumps(words).encode() + b"\n")


def guarded(pipe, action):
    """Runs what a new process is for; it never returns to its parent's code."""
    try:
        action()
    except OSError as error:
        say(pipe, error=error.errno, text=f"{error.strerror} {error.filename or str()}".strip()[:400])
    except BaseException as error:  # pylint: disable=broad-except
        say(pipe, error=0, text=repr(error)[:400])
    finally:
        os._exit(1)


def child_of(pipe, action):
    child = os.fork()
    if child == 0:
        guarded(pipe, action)
    return child


def become_host(index, plan, pipe, go):
    """Runs in a child of the head, which goes when the host is born."""
    kernel("unshare", NEW_ALL)
    born = child_of(pipe, lambda: live_as_host(index, plan, pipe, go))
    say(pipe, host=index, pid=born)
    os._exit(0)


def live_as_host(index, plan, pipe, go):
    os.read(go, 1)  # ends when the head has laid the wire
    kernel("prctl", SET_NAME, f"cluster-h{index}")
    furnish(f"h{index}", plan["hosts"], plan["shares"])
    ip(["link set lo up", f"address add {address(index + 1)}/24 dev eth0", "link set eth0 up"]
       + neighbours(plan["hosts"], "eth0"))
    if plan["rate"]:
        ip([limit_of("eth0", plan["rate"])], tool="tc")
    say(pipe, ready=index)
    close_all()
    stand_by()


def write_pids(pids):
    for index, pid in pids.items():
        with open(f"{DESK}/h{index}.pid", "w", encoding="utf-8") as file:
            file.write(f"{pid}\n")


def messages(pipe):
    """What the processes of the cluster say while it starts. A complaint is raised here."""
    with os.fdopen(pipe, "r", encoding="utf-8", closefd=False) as lines:
        for line in lines:
            message = json.loads(line)
            if "error" in message:
                raise OSError(message["error"], message["text"])
            yield message
    raise OSError(errno.EIO, "a process of the cluster died while it started")


def collect(news, word, count):
    found = {}
    while len(found) < count:
        message = next(news)
        found[message.get("host", message.get("ready"))] = message[word]
    return found


def wires(plan, pids):
    lines = [f"link add br0 address {hardware_address(0)} type bridge mcast_snooping 0",
             f"address add {address(0)}/24 dev br0", "link set br0 up", "link set lo up"]
    for index, pid in sorted(pids.items()):
        lines += [f"link add vh{index} type veth peer name eth0 address {hardware_address(index + 1)} netns {pid}",
                  f"link set vh{index} master br0 up"]
    return lines + neighbours(plan["hosts"], "br0")


def live_as_head(plan, outer):
    kernel("prctl", SET_NAME, "cluster-head")
    furnish("head", plan["hosts"], plan["shares"])
    news, pipe = os.pipe()
    wait_go, go = os.pipe()

    def host(index):
        os.close(go)
        become_host(index, plan, pipe, wait_go)

    for index in range(plan["hosts"]):
        child_of(pipe, lambda index=index: host(index))
    os.close(pipe)
    heard = messages(news)
    pids = collect(heard, "pid", plan["hosts"])
    ip(wires(plan, pids))
    if plan["rate"]:
        ip([limit_of(f"vh{index}", plan["rate"]) for index in pids], tool="tc")
    os.close(go)
    collect(heard, "ready", plan["hosts"])
    write_pids(pids)
    say(outer, ready=True)
    close_all()
    stand_by()


def keep(plan, pipe):
    """The keeper: outside of the namespaces; it ends when the head does, and takes the head with it."""
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    if plan["tied"]:
        die_with_parent()
        if os.getppid() != plan["tied"]:
            os._exit(1)
    kernel("prctl", SET_NAME, "cluster-keeper")
    kernel("unshare", NEW_ALL)

    def head():
        die_with_parent()
        live_as_head(plan, pipe)

    pid = child_of(pipe, head)
    say(pipe, head=pid)
    close_all(but=pipe)
    end = end_of(pid)
    os.waitpid(pid, 0)
    say(pipe, error=errno.EIO, text=f"the cluster's head {end} while it started")  # nobody listens if it had
    os._exit(0)


class Cluster:
    """A running cluster, seen from outside: keeper and head are process ids of the caller's."""

    def __init__(self, keeper, head):
        self.keeper, self.head = keeper, head

    def enter(self, host="head"):
        """The words that run a command on a host."""
        words = ["nsenter", "--target", str(self.head), "--mount", "--uts", "--ipc", "--net", "--pid", "--"]
        return words if host == "head" else words + [AGENT, host]

    def path(self, inside):
        """A path of the head's, from outside."""
        return f"/proc/{self.head}/root{inside}"

    def host_pids(self):
        """Host name -> its process 1, by the head's ids."""
        pids = {}
        for name, kind in map(os.path.splitext, os.listdir(self.path(DESK))):
            if kind == ".pid":
                with open(self.path(f"{DESK}/{name}{kind}"), encoding="utf-8") as file:
                    pids[name] = int(file.read())
        return pids

    def job_pids(self):
        """All processes of the cluster but the hosts themselves, by the head's ids."""
        hosts = {1, *self.host_pids().values()}
        return sorted(int(entry) for entry in os.listdir(self.path("/proc"))
                      if entry.isdigit() and int(entry) not in hosts)

    def end(self):
        """All of it dies with the head, and the keeper then. Returns when nothing is left."""
        kill(self.head)
        deadline = time.monotonic() + 10
        while is_running(self.keeper):
            if time.monotonic() > deadline:
                kill(self.keeper)
            time.sleep(0.01)


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def is_running(pid):
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:  # not ours
        return start_time(pid) is not None


def start_time(pid):
    """Tells a process from a later one with the same id; None: there is none, or only its exit status."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            words = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if words[0] == "Z" else int(words[19])


def missing_tool():
    for tool in ("ip", "tc", "nsenter", "setpriv"):
        if not any(os.access(os.path.join(folder, tool), os.X_OK) for folder in os.environ["PATH"].split(":")):
            return tool
    return None


def hear_of_start(pipe):
    """Returns: the head's process id, once the cluster is ready; nothing where the keeper ends before. On a busy machine the keeper may be
    the last to speak."""
    head, is_ready, text = None, False, b""
    while head is None or not is_ready:
        if not select.select([pipe], [], [], START_LIMIT_S)[0]:
            raise OSError(errno.ETIMEDOUT, "the cluster did not start in time")
        piece = os.read(pipe, 4096)
        if not piece:
            return None
        text += piece
        *lines, text = text.split(b"\n")
        for message in map(json.loads, lines):
            if "error" in message:
                raise OSError(message["error"], message["text"])
            head = message.get("head", head)
            is_ready |= message.get("ready", False)
    return head


def start(hosts, rate=None, shares=(), tied=True):
    """Makes a cluster. tied: it dies with this process, however that ends. Returns: a Cluster."""
    if os.geteuid() != 0:
        raise Unavailable("namespaces need root")
    if missing_tool():
        raise Unavailable(f"there is no {missing_tool()} (packages iproute2, util-linux)")
    plan = {"hosts": hosts, "rate": rate, "shares": list(shares), "tied": os.getpid() if tied else None}
    news, pipe = os.pipe()
    keeper = child_of(pipe, lambda: keep(plan, pipe))
    os.close(pipe)
    try:
        head = hear_of_start(news)
        if head is None:
            raise OSError(errno.EIO, f"the cluster's keeper {end_of(keeper)} while it started")
        return Cluster(keeper, head)
    except BaseException as error:
        Cluster(keeper, keeper).end()
        if isinstance(error, OSError) and error.errno in LACKING:
            raise Unavailable(error.strerror) from error
        raise
    finally:
        os.close(news)
