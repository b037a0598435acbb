#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The messages and bytes that calls over invented nodes put on the wire are what the algorithms' cards say.

usage: wire_test.py RANKS NODES PLAIN GATHER SIZED BCAST -- MPI_RUN WORDS... -- NODES_TEST
PLAIN is alltoall's algorithm, GATHER allgather(v)'s, SIZED alltoallv's, BCAST bcast's. Counted here is not by the
library's schedules but from the cards' ideas ("Steps", "Bytes"): who sends which bundles to whom. Compared with the
report (COCO_STATS): the messages and bytes of all ranks, and of the rank with most.
"""
import collections
import itertools
import json
import os
import subprocess
import sys
import tempfile

CALLS = 2            # of each form and size, by nodes_test
SIZES = [8, 600, 20000, 70000]
LONE_BYTES = 3000
HEAD_BYTES, ALONG_BYTES, STRAIGHT_BYTES = 24, 4096, 65536  # sloav's card
SEGMENT_BYTES = 16384  # leader's bcast, unless the algorithm's parameter says else

# Between participants; `bundles` are (from, to), of a gather (from, None).
Message = collections.namedtuple("Message", "sender receiver bundles")


def words_of(algorithm):
    """'leader:bruck,radix=4' -> ('leader', 'bruck', {'radix': '4'})"""
    stem, _, rest = algorithm.partition(":")
    words = [word for word in rest.split(",") if word]
    named = dict(word.split("=") for word in words if "=" in word)
    inner = next((word for word in words if "=" not in word), "pairwise")
    return stem, inner, named


def digit_places(count, radix):
    """Each d r^k below `count`, 0 < d < r, with r^k: the messages of Bruck's rounds."""
    weight = 1
    while weight < count:
        for digit in range(1, radix):
            if digit * weight < count:
                yield digit, weight
        weight *= radix


def pairwise(count, personal, **_):
    for a, b in itertools.permutations(range(count), 2):
        yield Message(a, b, [(a, b if personal else None)])


def bruck(count, personal, radix, ring):
    for (digit, weight), me in itertools.product(digit_places(count, radix), range(count)):
        if personal:
            distances = [j for j in range(count) if j // weight % radix == digit]
            starts = [((me - j % weight) % count, j) for j in distances]  # lower digits have been gone
            yield Message(me, (me + digit * weight) % count, [(a, (a + j) % count) for a, j in starts])
            continue
        bundles = [((me + i) % count, None) for i in range(min(weight, count - digit * weight))]
        straight = len(bundles) if ring else min(len(bundles), count - me)  # round the end: a second message
        to = (me - digit * weight) % count
        yield from (Message(me, to, part) for part in (bundles[:straight], bundles[straight:]) if part)


def shares_of_curve(count):
    """{(receiver, sender): the participant in whose share of the Morton curve it lies}, by balanced recursion."""
    def cells(row, rows, column, columns):
        if rows * columns == 1:
            yield row, column
        elif rows >= columns:
            yield from cells(row, (rows + 1) // 2, column, columns)
            yield from cells(row + (rows + 1) // 2, rows // 2, column, columns)
        else:
            yield from cells(row, rows, column, (columns + 1) // 2)
            yield from cells(row, rows, column + (columns + 1) // 2, columns // 2)
    # As many cells as participants for each.
    return {cell: i // count for i, cell in enumerate(cells(0, count, 0, count)) if cell[0] != cell[1]}


def multinode_morton(count, personal, **_):
    owners = shares_of_curve(count)
    fetched = {(owner, s) for (_, s), owner in owners.items() if owner != s}
    to_owner, onward = collections.defaultdict(list), collections.defaultdict(list)
    for (r, s), owner in owners.items():
        if owner != s:
            to_owner[s, owner].append((s, r) if personal else (s, None))
        if owner != r and (personal or (r, s) not in fetched):
            onward[owner, r].append((s, r) if personal else (s, None))
    for (s, owner), bundles in to_owner.items():
        yield Message(s, owner, bundles if personal else bundles[:1])  # gather: all want the same
    for (owner, r), bundles in onward.items():
        yield Message(owner, r, bundles)


EXCHANGES = {"pairwise": pairwise, "bruck": bruck, "multinode_morton": multinode_morton}


class OfNodes:
    """Each rank speaks for itself, with one rank of each other node, or with all."""
    def __init__(self, nodes, personal, with_all):
        self.over_nodes, self.nodes, self.personal, self.with_all = True, nodes, personal, with_all

    def sends(self):
        for a, b in itertools.permutations(self.nodes, 2):
            for sender in a:
                pairs = [(sender, receiver) for receiver in b]
                if self.with_all:
                    yield from ((sender, [pair]) for pair in pairs)
                else:
                    yield sender, pairs if self.personal else [(sender, None)]


def scheme_of(algorithm, nodes, personal):
    stem = words_of(algorithm)[0]
    if stem in ("node_aware", "split"):
        return OfNodes(nodes, personal, stem == "split")
    return Scheme(algorithm, nodes, personal)


class Scheme:
    """The participants, nodes or ranks, and their messages. sends() yields (rank, pairs of ranks whose blocks go)."""
    def __init__(self, algorithm, nodes, personal):
        stem, inner, named = words_of(algorithm)
        radix = int(named.get("radix", 2))
        self.over_nodes = stem in ("leader", "multileader", "sloavx")
        inner = {"bruck": "bruck", "sloav": "bruck", "sloavx": "bruck"}.get(stem, inner)
        inner = stem if stem == "multinode_morton" else inner
        self.members = nodes if self.over_nodes else [[r] for node in nodes for r in node]
        self.messages = list(EXCHANGES[inner](len(self.members), personal, radix=radix, ring=self.over_nodes))
        self.leaders = int(named.get("leaders", 0)) if stem == "multileader" else 1

    def rank_of(self, message):
        """multileader: the node i places on is the partner of leader (i - 1) mod leaders."""
        ranks = self.members[message.sender]
        leaders = min(self.leaders, len(ranks)) or len(ranks)
        return ranks[((message.receiver - message.sender) % len(self.members) - 1) % leaders]

    def pairs(self, bundle):
        """The pairs of ranks whose blocks are in a bundle."""
        a, b = bundle
        return itertools.product(self.members[a], [None] if b is None else self.members[b])

    def sends(self):
        for message in self.messages:
            yield self.rank_of(message), [pair for bundle in message.bundles for pair in self.pairs(bundle)]


class Tally:
    def __init__(self):
        self.messages, self.bytes = collections.Counter(), collections.Counter()

    def add(self, rank, *sizes):
        self.messages[rank] += len(sizes)
        self.bytes[rank] += sum(sizes)

    def figures(self, calls):
        return {name: calls * amount for name, counter in (("messages", self.messages), ("wire_bytes", self.bytes))
                for name, amount in ((name, sum(counter.values())), (name + "_most", max(counter.values())))}


def plain(scheme, block_bytes):
    tally = Tally()
    for rank, pairs in scheme.sends():
        tally.add(rank, block_bytes * len(pairs))
    return tally


def sized(scheme, nodes, size_of, personal):
    """Head, lengths and short blocks in one message, in a second what is more than goes along; long ones straight."""
    tally = Tally()
    for rank, pairs in scheme.sends():
        sizes = [size_of(*pair) for pair in pairs]
        data = sum(size for size in sizes if not personal or size <= STRAIGHT_BYTES)
        lengths = -(-len(sizes) * (4 if personal else 8) // 8) * 8
        along = data <= ALONG_BYTES
        parts = [HEAD_BYTES + lengths + data] if along else [HEAD_BYTES + lengths, data]
        tally.add(rank, *parts)
    node = {rank: n for n, ranks in enumerate(nodes) for rank in ranks}
    for a, b in itertools.permutations(node, 2):
        if personal and size_of(a, b) > STRAIGHT_BYTES and not (scheme.over_nodes and node[a] == node[b]):
            tally.add(a, size_of(a, b))
    return tally


def bcast_figures(algorithm, nodes, size):
    """A message for each segment to each other node; of one segment the root sends Bruck's number."""
    _, _, named = words_of(algorithm)
    segment = {"1K": 1024, "2K": 2048}.get(named.get("segment"), SEGMENT_BYTES)
    segments = -(-size // segment)
    figures = {"messages": CALLS * segments * (len(nodes) - 1), "wire_bytes": CALLS * size * (len(nodes) - 1)}
    if segments == 1:
        children = len(list(digit_places(len(nodes), int(named.get("radix", 2)))))
        figures["messages_most"] = CALLS * children
    return figures


def expected(nodes, names):
    """(function, sizes of which the classes are summed, algorithm, figures)"""
    plain_name, gather, sized_name, bcast = names
    ranks = sum(map(len, nodes))
    for size in SIZES:
        def all_alike(*_, size=size):
            return size
        yield "MPI_Alltoall", [size], plain_name, plain(scheme_of(plain_name, nodes, True), size).figures(CALLS)
        yield "MPI_Allgather", [size], gather, plain(scheme_of(gather, nodes, False), size).figures(CALLS)
        yield ("MPI_Allgatherv", [size], gather,
               sized(scheme_of(gather, nodes, False), nodes, all_alike, False).figures(CALLS))
        yield ("MPI_Alltoallv", [size], sized_name,
               sized(scheme_of(sized_name, nodes, True), nodes, all_alike, True).figures(CALLS))
        yield "MPI_Bcast", [size], bcast, bcast_figures(bcast, nodes, size)
    lone = sized(scheme_of(sized_name, nodes, True), nodes, lambda a, b: LONE_BYTES * ((a, b) == (0, ranks - 1)), True)
    figures = lone.figures(1)
    yield ("MPI_Alltoallv", [0, LONE_BYTES], sized_name, {name: figures[name] for name in ("messages", "wire_bytes")})


def report_of(ranks, nodes, names, run):
    variables = ("COCO_ALLTOALL", "COCO_ALLGATHER", "COCO_ALLGATHERV", "COCO_ALLTOALLV", "COCO_BCAST")
    with tempfile.TemporaryDirectory(prefix="coco-test-") as folder:
        file = os.path.join(folder, "stats.json")
        pairs = dict(zip(variables, (names[0], names[1], names[1], names[2], names[3])),
                     COCO_TOPOLOGY=f"nodes={nodes},domains=1", COCO_STATS=file)
        at = run.index("--")
        command = run[:at] + ["-n", str(ranks)] + [f"--env={name}={value}" for name, value in pairs.items()] + run[at:]
        subprocess.run(command + ["counted", *map(str, SIZES)], check=True)
        with open(file, encoding="utf-8") as stream:
            return json.load(stream)["calls"]


def main():
    ranks, count = map(int, sys.argv[1:3])
    names, run = sys.argv[3:7], sys.argv[8:]
    first = [node * (ranks // count) + min(node, ranks % count) for node in range(count + 1)]
    nodes = [list(range(first[n], first[n + 1])) for n in range(count)]
    rows = report_of(ranks, count, names, run)
    faults = 0
    for function, sizes, algorithm, figures in expected(nodes, names):
        mine = [row for row in rows if row["function"] == function and row["algorithm"] == algorithm.split(":")[0]
                and any(row["block_first"] <= size <= row["block_last"] for size in sizes)]
        for name, amount in figures.items():
            counted = sum(row[name] for row in mine)
            if counted != amount:
                faults += 1
                print(f"{function} of {sizes} bytes by {algorithm}: {name} {counted}, by the card {amount}")
    print(f"{len(nodes)} nodes of {[len(node) for node in nodes]} ranks: {faults} figures differ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
