# SPDX-License-Identifier: BSD-3-Clause
"""Simulated machines for SimGrid: the platform file, the host file, and every setting of SMPI that matters.

The constants are guesses at a 100 Gbit/s InfiniBand fabric, not a calibration; docs/simulation.md.
"""
import pathlib

LINK_BANDWIDTH = "12.5GBps"
LINK_LATENCY = "250ns"        # each; host to host over one switch: two of them
LOOPBACK_BANDWIDTH = "10GBps"  # messages within a node: SMPI's functions use them, our schedules do not
LOOPBACK_LATENCY = "300ns"
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


def platform(hosts, tree):
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
           bw="{LINK_BANDWIDTH}" lat="{LINK_LATENCY}" sharing_policy="SPLITDUPLEX" {topology}
           loopback_bw="{LOOPBACK_BANDWIDTH}" loopback_lat="{LOOPBACK_LATENCY}"/>
</platform>
"""


def write(folder, hosts, per_host, tree):
    """Writes platform and host file (ranks in blocks). Returns: their paths."""
    folder = pathlib.Path(folder)
    kind = "tree" if tree else "crossbar"
    platform_file = folder / f"{kind}{hosts}.xml"
    platform_file.write_text(platform(hosts, tree))
    host_file = folder / f"hosts{hosts}x{per_host}"
    host_file.write_text("".join(f"node{i}\n" * per_host for i in range(hosts)))
    return platform_file, host_file


def command(folder, hosts, per_host, tree, more=(), gap_ns=0):
    """The command line that starts a program there, up to the program."""
    platform_file, host_file = write(folder, hosts, per_host, tree)
    settings = [f"--cfg={s}" for s in [*([] if gap_ns else [LATENCY_FACTOR]), *SETTINGS, *more]]
    return ["smpirun", "-np", str(hosts * per_host), "-platform", str(platform_file), "-hostfile", str(host_file),
            "--log=xbt_cfg.thresh:warning", "--log=root.thresh:warning", *settings]
