#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The messages and bytes that neighbours over invented nodes put on the wire are what aggregate's card says.

usage: wire_neighbors_test.py RANKS NODES aggregate -- MPI_RUN WORDS... -- NODES_TEST
In the graph all ranks of the first two nodes send to all ranks of the others. Counted is from the card's ideas alone: a
message for each bundle.
"""
import json
import os
import subprocess
import sys
import tempfile

from wire_test import CALLS, Tally

SIZES = [8, 600, 20000]
ROOM_BYTES = {True: 4096, False: 16384}        # of a block in v forms, with 24 bytes besides
LENGTH_BYTES = 8


def bundle_messages(sizes, personal):
    """(sender node, blocks) of each message between leaders. sizes: the ranks of the nodes."""
    return [(node, sizes[node] * sizes[to] if personal else sizes[node]) for node in (0, 1) for to in range(2, len(sizes))]


def expected(sizes, size, personal, sized):
    tally = Tally()
    straight = sized and size > ROOM_BYTES[personal] - 3 * LENGTH_BYTES
    for node, blocks in bundle_messages(sizes, personal):
        data = 0 if straight else blocks * size
        tally.add(node, data + (LENGTH_BYTES * blocks if sized else 0))
    if straight:
        for _ in range(sum(sizes[:2]) * sum(sizes[2:])):
            tally.add(0, size)
    return {name: CALLS * sum(counter.values())
            for name, counter in (("messages", tally.messages), ("wire_bytes", tally.bytes))}


def report_of(ranks, sizes, algorithm, run):
    with tempfile.TemporaryDirectory(prefix="coco-test-") as folder:
        file = os.path.join(folder, "stats.json")
        forms = ("ALLTOALL", "ALLTOALLV", "ALLGATHER", "ALLGATHERV")
        pairs = {f"COCO_NEIGHBOR_{form}": algorithm for form in forms}
        pairs |= {"COCO_TOPOLOGY": f"nodes={len(sizes)},domains=1", "COCO_STATS": file}
        at = run.index("--")
        command = run[:at] + ["-n", str(ranks)] + [f"--env={name}={value}" for name, value in pairs.items()] + run[at:]
        subprocess.run(command + ["neighbors", str(sum(sizes[:2])), *map(str, SIZES)], check=True)
        with open(file, encoding="utf-8") as stream:
            return json.load(stream)["calls"]


def main():
    ranks, nodes = map(int, sys.argv[1:3])
    algorithm, run = sys.argv[3], sys.argv[5:]
    sizes = [ranks // nodes + (node < ranks % nodes) for node in range(nodes)]
    rows = report_of(ranks, sizes, algorithm, run)
    faults = 0
    for function, personal, sized in (("alltoall", True, False), ("alltoallv", True, True),
                                      ("allgather", False, False), ("allgatherv", False, True)):
        wanted = {"messages": 0, "wire_bytes": 0}
        for size in SIZES:
            for name, amount in expected(sizes, size, personal, sized).items():
                wanted[name] += amount
        for name, amount in wanted.items():
            counted = sum(row[name] for row in rows
                          if row["function"] == f"MPI_Neighbor_{function}" and row["algorithm"] == "aggregate")
            if counted != amount:
                faults += 1
                print(f"{function} by {algorithm}: {name} {counted}, by the card {amount}")
    print(f"{algorithm} on nodes of {sizes} ranks: {faults} figures differ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
