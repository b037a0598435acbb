# SPDX-License-Identifier: BSD-3-Clause
"""What is simulated of neighbourhood collectives: sets of one machine, with graphs, contenders and block sizes."""
import dataclasses

from machine import FABRIC, TCP, Machine

COLLECTIVES = ("neighbor_allgather", "neighbor_alltoall")
DIRECT, COMPUTED = "direct", "direct+computed"
MANY_SIZES = (4, 64, 512, 4096, 16384)


@dataclasses.dataclass
class Graph:
    name: str                   # as bench/simulate/graph.h has it
    degree: int                 # about
    asked: float                # by how much combining is to be faster than direct sends at 4 B
    sizes: tuple = (4,)

    @property
    def has_few_edges(self):
        """So that SimGrid can simulate a message for each: its time grows with the square of a rank's."""
        return self.degree <= 60


    def at(self, sizes):
        return dataclasses.replace(self, sizes=sizes)


@dataclasses.dataclass
class Simulation:
    graph: Graph
    names: tuple                # of collectives
    contenders: list
    copies: str

    @property
    def collectives(self):
        return [f"{name}@{self.graph.name}" for name in self.names]

    @property
    def measurements(self):
        return len(self.names) * len(self.contenders) * len(self.graph.sizes)

    @property
    def what(self):
        return f"{self.graph.name}, {' '.join(self.contenders)}, copies {self.copies}, from {self.graph.sizes[0]} B"

    def made(self, row):
        return (row["collective"], row["contender"], row["copies"], int(row["bytes"])) == (
            self.collectives[0], self.contenders[-1], self.copies, self.graph.sizes[0])


def random_graph(density, ranks, sizes=(4,)):
    return Graph(f"random:{density}", round(density * ranks), 0.5, sizes)


def moore(d, radius, degree, sizes=(4,)):
    return Graph(f"moore:{d}:{radius}", degree, 0.43 if radius > 1 else 0, sizes)


@dataclasses.dataclass
class Set:
    name: str
    hosts: int
    per_host: int
    tree: bool
    graphs: list
    contenders: tuple           # of ours; those that are simulated together
    asked_of: dict = dataclasses.field(default_factory=dict)  # another share than the graph's is asked of a contender
    gap_ns: int = 0
    machine: Machine = FABRIC

    @property
    def ours(self):
        return [c for together in self.contenders for c in together]

    @property
    def what(self):
        kind = "fat tree" if self.tree else "crossbar"
        return f"neighbours, {self.hosts} hosts x {self.per_host} ranks, {kind}"

    def simulations(self):
        """The quick ones first."""
        for copies in ("10", "free"):
            for contenders in self.contenders:
                for graph in self.graphs:
                    # Nearly all edges of dense graphs are messages: as many as of direct sends.
                    names = [c for c in contenders if c != "naive" or graph.has_few_edges]
                    if copies == "10" and contenders == self.contenders[0]:
                        names = [COMPUTED, *names]
                    if names:
                        yield Simulation(graph.at((4,)), COLLECTIVES, names, copies)
        for graph in self.graphs:
            if graph.has_few_edges:  # the same messages in both collectives, and no copies
                yield Simulation(graph, COLLECTIVES[:1], [DIRECT], "free")
        for graph in self.graphs:
            if len(graph.sizes) > 1:
                yield Simulation(graph.at(graph.sizes[1:]), COLLECTIVES, self.ours, "10")


def graphs(sizes):
    """Of 1,024 ranks."""
    return [moore(2, 1, 8), moore(2, 2, 24, sizes), moore(2, 3, 48), moore(2, 4, 80),
            moore(3, 1, 26), moore(3, 2, 124), moore(3, 3, 342), moore(3, 4, 575), moore(4, 1, 80),
            random_graph(0.05, 1024), random_graph(0.1, 1024), random_graph(0.2, 1024), random_graph(0.4, 1024),
            random_graph(0.8, 1024)]


COMBININGS = (("combining:depth=0",), ("combining",))
FEW_GRAPHS = [moore(2, 2, 24), moore(2, 3, 48), moore(3, 1, 26), random_graph(0.05, 1024)]
SETS = [
    Set("neighbors-1024x1-tcp", 1024, 1, False, FEW_GRAPHS, COMBININGS, machine=TCP),
    Set("neighbors-1024x1", 1024, 1, False, graphs(MANY_SIZES), (*COMBININGS, ("combining:threshold=8,depth=0",))),
    *[Set(f"neighbors-{hosts}x{1024 // hosts}", hosts, 1024 // hosts, True, graphs(MANY_SIZES),
          (("aggregate",), *COMBININGS, ("naive",)), {"aggregate": 0.6}) for hosts in (64, 256)],
]


def checks():
    """Small machines and graphs, each with the names of all contenders."""
    names = [DIRECT, "naive", "eager", "combining", "combining:depth=0", "combining:threshold=1,depth=2", "aggregate",
             "aggregate:leaders=1"]
    for hosts, per_host in ((16, 1), (7, 1), (4, 3), (5, 4)):
        for graph in ("random:0.5", "moore:2:1", "moore:2:2:all"):
            yield hosts, per_host, [f"{c}@{graph}" for c in COLLECTIVES], names, [1, 100, 5000]
