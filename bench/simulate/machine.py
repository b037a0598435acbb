# SPDX-License-Identifier: BSD-3-Clause
"""Simulated machines for SimGrid: the platform file, the host file, and every setting of SMPI that matters.

The constants of FABRIC are guesses at a 100 Gbit/s InfiniBand fabric, not a calibration; docs/simulation.md.
"""
import dataclasses
import pathlib

import measured


@dataclasses.dataclass(frozen=True)
class Machine:
    link_bandwidth: str = "12.5GBps"
    link_latency: str = "250ns"        # each; host to host over one switch: two of them
    loopback_bandwidth: str = "10GBps"  # messages within a node: SMPI's functions use them, our schedules do not
    loopback_latency: str = "300ns"
    cpus: tuple = ()                   # words for class Cpus (cpus.h): what messages cost, instead of SETTINGS
    settings: tuple = ()               # of SMPI, instead of those of that name in SETTINGS

    def words(self, gap_ns):
        return ",".join([*([f"gap={gap_ns}"] if gap_ns else []), *self.cpus]) or "-"

    @property
    def small_message(self):
        words = dict(word.split("=") for word in self.cpus) or {"send": "0:300", "receive": "0:200"}
        send, receive = (words[part].split("/")[0].split(":")[1] for part in ("send", "receive"))
        return f"{send} ns a send, {receive} ns a receive"

    @property
    def what(self):
        return (f"links {self.link_bandwidth} {self.link_latency}, loopback {self.loopback_bandwidth} "
                f"{self.loopback_latency}" + "".join(f"; {word}" for word in [*self.settings, *self.cpus]))


# SMPI charges no CPU for sending what is not detached. What asking the receiver costs is in the costs measured.
DETACHED = ("smpi/send-is-detached-thresh:1048576",)


def cluster(flavour):
    """A cluster of namespaces: its wires are the CPUs, which all hosts share."""
    costs = measured.Costs(flavour)
    return Machine("100GBps", "1ns", "100GBps", "1ns", costs.words(measured.CPUS, costs.poll), DETACHED)


def tcp(flavour):
    """Hosts that have a CPU for each rank, messages that cost it what they cost there."""
    return Machine("12.5GBps", "250ns", "10GBps", "300ns", measured.Costs(flavour).words(0, 0), DETACHED)


FABRIC = Machine()
CLUSTER_MPICH, CLUSTER_OPENMPI = cluster("mpich"), cluster("openmpi")
TCP = tcp("mpich")
LEAF_HOSTS = 16               # fat tree: hosts, and links up, of a leaf switch

# Nothing of SMPI's calibration for Gigabit Ethernet: latencies and bandwidths as in the platform.
LATENCY_FACTOR = "smpi/lat-factor:0:1"  # where messages a second are bounded, simulate.cc gives the factor

SETTINGS = [
    "smpi/bw-factor:0:0.95",
    # What sending (os), starting to send (ois) and receiving (or) a message cost the CPU: seconds, and per byte.
    "smpi/os:0:300e-9:0.02e-9",
    "smpi/ois:0:300e-9:0.02e-9",
    "smpi/or:0:200e-9:0.02e-9",
    "smpi/test:1e-7",
    "smpi/iprobe:1e-7",
    # A transfer starts when both sides are there; below 64 KiB the sender does not wait for that.
    "smpi/async-small-thresh:0",
    "smpi/send-is-detached-thresh:65536",
    # Traffic one way takes nothing from the other way; simulating that is what makes thousands of ranks slow.
    "network/crosstraffic:0",
    # Only modelled work takes time; ranks share the program's memory; many ranks need small stacks.
    "smpi/host-speed:1Gf",
    "smpi/simulate-computation:no",
    "smpi/privatization:no",
    "contexts/stack-size:512",
]


def platform(machine, hosts, tree):
    """XML of one cluster: a non-blocking fat tree of two levels, or one non-blocking crossbar."""
    topology = ""
    if tree:
        assert hosts % LEAF_HOSTS == 0, "a fat tree has full leaf switches"
        leaves = hosts // LEAF_HOSTS
        topology = f'topology="FAT_TREE" topo_parameters="2;{LEAF_HOSTS},{leaves};1,{LEAF_HOSTS};1,1"'
    return f"""<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="machine" prefix="node" suffix="" radical="0-{hosts - 1}" speed="1Gf" core="64"
           bw="{machine.link_bandwidth}" lat="{machine.link_latency}" sharing_policy="SPLITDUPLEX" {topology}
           loopback_bw="{machine.loopback_bandwidth}" loopback_lat="{machine.loopback_latency}"/>
</platform>
"""


def write(folder, case):
    """Writes platform and host file (ranks in blocks). Returns: their paths."""
    folder = pathlib.Path(folder)
    kind = "tree" if case.tree else "crossbar"
    platform_file = folder / f"{kind}{case.hosts}.xml"
    platform_file.write_text(platform(case.machine, case.hosts, case.tree))
    host_file = folder / f"hosts{case.hosts}x{case.per_host}"
    host_file.write_text("".join(f"node{i}\n" * case.per_host for i in range(case.hosts)))
    return platform_file, host_file


def command(folder, case, more=()):
    """The command line that starts a program there, up to the program. `case`: hosts, per_host, tree, gap_ns, machine."""
    platform_file, host_file = write(folder, case)
    settings = [f"--cfg={s}" for s in [*([] if case.gap_ns else [LATENCY_FACTOR]), *SETTINGS, *case.machine.settings, *more]]
    return ["smpirun", "-np", str(case.hosts * case.per_host), "-platform", str(platform_file),
            "-hostfile", str(host_file), "--log=xbt_cfg.thresh:warning", "--log=root.thresh:warning", *settings]
