# SPDX-License-Identifier: BSD-3-Clause
"""What is simulated: sets of one machine, one collective, block sizes and contenders; and the ratios asked of each."""
import dataclasses

from machine import CLUSTER_MPICH, CLUSTER_OPENMPI, FABRIC, TCP, Machine

ALL_SIZES = range(1 << 30)


@dataclasses.dataclass
class Contender:
    name: str                  # as bench/simulate/plan.h has it
    label: str = ""            # in tables
    settings: tuple = ()       # of SMPI, besides machine.SETTINGS
    copies: tuple = ("10", "free")  # GB/s of copies on a node; SMPI's own functions copy in no time
    sizes: object = ALL_SIZES  # those that can be simulated

    def __post_init__(self):
        self.label = self.label or self.name


@dataclasses.dataclass
class Ratio:
    """Geometric mean of time of `rival` / time of `ours` over the sizes from `least` to below `below`."""
    ours: str
    rival: str
    below: int
    target: float
    least: int = 1


@dataclasses.dataclass
class Case:
    name: str
    collective: str
    hosts: int
    per_host: int
    tree: bool
    sizes: list
    contenders: list = dataclasses.field(default_factory=list)
    ratios: list = dataclasses.field(default_factory=list)
    gap_ns: int = 0            # a host's network card starts a message that often at most
    machine: Machine = FABRIC

    def is_of(self, row):
        return (row["collective"], row["hosts"], row["per_host"]) == (self.collective, str(self.hosts), str(self.per_host))

    @property
    def what(self):
        kind = "fat tree" if self.tree else "crossbar"
        rate = f", {1000 / self.gap_ns:g} million messages a second and host" if self.gap_ns else ""
        return f"{self.collective}, {self.hosts} hosts x {self.per_host} ranks, {kind}{rate}"


def ours(*names, **more):
    return [Contender(name, **more) for name in names]


def selected(*selections, **more):
    """SMPI's functions as these MPI libraries would choose them."""
    return [Contender("mpi", f"SMPI {s}", (f"smpi/coll-selector:{s}",), ("free",), **more) for s in selections]


def smpi(collective, *names, **more):
    """One function of SMPI's."""
    return [Contender("mpi", f"SMPI {n}", (f"smpi/{collective}:{n}",), ("free",), **more) for n in names]


def powers(first, last):
    return [1 << i for i in range(first.bit_length() - 1, last.bit_length())]


BRUCKS = ("bruck", "bruck:radix=4", "bruck:radix=8")
LEADERS = ("leader", "leader:bruck", "leader:multinode_morton")
INNER_MVAPICH2 = [Contender("leader+mpi", "leader+mvapich2", ("smpi/alltoall:mvapich2",))]
BEST = "best of ours"
SLOAVS = ("sloav", "sloav:radix=4", "sloav:radix=8")


def sloavx_against_sloav(collective):
    """The v forms of 32 x 16 ranks. SMPI's own functions take minutes and more there."""
    return Case(f"{collective}-32x16", collective, 32, 16, False, [1, 4, 16, 64, 256, 1024],
                ours(*SLOAVS[:2], "sloavx", "sloavx:leaders=16", "sloavx:radix=8,leaders=16", "leader", "multileader",
                     "sloav+phases"),
                [Ratio(who, rival, 17, 5.9, 16) for who in ("sloavx", "sloavx:radix=8,leaders=16", "multileader")
                 for rival in ("sloav", "sloav+phases")])


SETS = [
    Case("alltoall-256x1", "alltoall", 256, 1, True, powers(1, 4096),
         ours(*BRUCKS, "multinode_morton", "leader", sizes=range(2049)) + ours("bruck+copies")
         + selected("mvapich2", "mpich", "ompi", "impi", sizes=range(2049))
         + smpi("alltoall", "bruck") + smpi("alltoall", "mvapich2_scatter_dest", sizes=range(2049)),
         [Ratio(who, rival, 1024, 2.23) for who in ("multinode_morton", BEST)
          for rival in ("SMPI mvapich2", "SMPI bruck", "SMPI mvapich2_scatter_dest", "bruck+copies")]),
    Case("alltoall-256x1-tcp", "alltoall", 256, 1, True, powers(1, 512),
         ours(*BRUCKS, "multinode_morton", copies=("10",)) + ours("bruck+copies", copies=("10",))
         + selected("mvapich2") + smpi("alltoall", "bruck"),
         [Ratio(who, rival, 1024, 2.23) for who in ("multinode_morton", BEST)
          for rival in ("SMPI mvapich2", "SMPI bruck", "bruck+copies")], machine=TCP),
    Case("allgather-256x1", "allgather", 256, 1, True, powers(1, 4096),
         ours(*BRUCKS, "multinode_morton", "leader") + selected("mvapich2", "mpich", "ompi", "impi"),
         [Ratio(BEST, "SMPI mvapich2", 1024, 1)]),
    Case("alltoall-128x24", "alltoall", 128, 24, False, powers(1, 128),
         ours(*LEADERS, "multileader") + ours("bruck:radix=4", sizes=(1, 8, 32), copies=("10",)) + INNER_MVAPICH2
         # At up to 8 bytes mvapich2's table says `rdb`, of which SMPI's version takes P^2 blocks a rank: 230 GB.
         + [Contender("mpi", "SMPI mvapich2", ("smpi/alltoall:mvapich2",), ("free",), range(9, 1025))]
         + smpi("alltoall", "bruck") + ours("bruck+copies", sizes=(16, 32), copies=("10",)),
         [Ratio(who, "leader+mvapich2", 64, 1.88) for who in ("leader:multinode_morton", BEST)]
         + [Ratio(who, "SMPI mvapich2", 64, 3.81, 16) for who in ("leader:multinode_morton", BEST)]
         + [Ratio(who, "bruck+copies", 64, 3.81, 16) for who in ("leader:multinode_morton", BEST)]
         + [Ratio(who, "SMPI bruck", 64, 3.81) for who in ("leader:multinode_morton", BEST)]),
    Case("allgather-256x24", "allgather", 256, 24, False, [8, 64, 256, 1024],
         ours("leader", "leader+ring", copies=("10",), sizes=(8, 1024))
         + ours("multileader", copies=("10",), sizes=(8, 1024))
         + ours("leader:bruck", "leader:multinode_morton", "leader+doubling"),
         [Ratio(who, rival, 2048, 1.85, 8) for who in ("leader:multinode_morton", BEST)
          for rival in ("leader+doubling", "leader+ring")]),
    Case("allgather-64x16", "allgather", 64, 16, False, [8, 64, 256, 1024],
         ours(*LEADERS, "leader:bruck,leaders=4", "multileader", "multileader:leaders=4", "leader+ring",
              "leader+doubling"),
         [Ratio(BEST, rival, 2048, 1.85, 8) for rival in ("leader+doubling", "leader+ring")]),
    Case("alltoall-64x16", "alltoall", 64, 16, False, powers(8, 1024),
         ours(*LEADERS, "multileader", "bruck:radix=4") + INNER_MVAPICH2
         + smpi("alltoall", "bruck"),
         [Ratio(BEST, rival, 1024, 1, 8) for rival in ("leader+mvapich2", "SMPI bruck")]),
    *[Case(name, "alltoall", 32, 16, False, [8, 64, 512, 4096],
           ours("leader", "multileader", "bruck:radix=4") + selected("mpich", "mvapich2")
           + smpi("alltoall", "bruck", "mvapich2_scatter_dest"),
           [Ratio(who, rival, 8192, 1, 8) for who in ("leader", "multileader")
            for rival in ("SMPI mpich", "SMPI mvapich2", "SMPI bruck", "SMPI mvapich2_scatter_dest")], gap)
      for name, gap in (("alltoall-32x16", 0), ("alltoall-32x16-5M", 200))],
    Case("alltoall-1024x1", "alltoall", 1024, 1, False, powers(8, 512),
         ours(*BRUCKS) + ours("multinode_morton", sizes=range(33), copies=("10",)) + smpi("alltoall", "bruck"),
         [Ratio(BEST, "SMPI bruck", 1024, 1, 8)]),
    # SMPI's linear alltoallv takes SimGrid a time that grows with the third power of the ranks.
    *[Case(f"{collective}-{hosts}x1", collective, hosts, 1, False, [1, 8, 64],
           ours(*SLOAVS, "sloav+phases") + (smpi("alltoallv", "ompi_basic_linear") if hosts <= 128 else []),
           [Ratio(who, "SMPI ompi_basic_linear", 9, 2.65, 8) for who in ("sloav", BEST)])
      for collective in ("alltoallv", "alltoallv-sparse") for hosts in (64, 128, 1024)],
    *map(sloavx_against_sloav, ("alltoallv", "alltoallv-uneven", "alltoallv-sparse")),
    Case("bcast-8x8", "bcast", 8, 8, False, powers(1024, 8 << 20),
         ours("leader", "leader:radix=4", "leader:radix=8", "leader:segment=8K", "leader:segment=64K", "leader:route=scatter")
         + selected("mpich", "ompi", "mvapich2", "impi"),
         [Ratio(who, f"SMPI {rival}", 1 << 24, 1.25) for who in ("leader", BEST)
          for rival in ("mpich", "ompi", "mvapich2", "impi")]),
]


SELECTIONS = ("mpich", "ompi", "mvapich2", "impi")
DEFAULT = "default"  # the set of what the built-in rules choose


def defaults():
    """Machines and collectives on which the built-in rules are compared with SMPI's selections."""
    for hosts, per_host in ((8, 1), (64, 1), (256, 1), (32, 2), (4, 4), (8, 4), (8, 8), (16, 16)):
        for collective in ("alltoall", "alltoallv", "allgather", "bcast"):
            if collective == "alltoallv" and hosts * per_host > 64:
                continue  # SMPI's functions take a time that grows with the third power of the ranks
            yield Case(DEFAULT, collective, hosts, per_host, False, [8, 64, 256, 512, 1024, 4096, 16384, 65536])


@dataclasses.dataclass
class Cluster:
    """Of namespaces: a machine that was measured, and SMPI's selection that is nearest to the library's."""
    flavour: str
    machine: Machine
    selection: str


CLUSTERS = {"cluster-mpich": Cluster("mpich", CLUSTER_MPICH, "mpich"),
            "cluster-openmpi": Cluster("openmpi", CLUSTER_OPENMPI, "ompi")}


def clusters(name):
    """What scripts/bench --cluster measures of that library."""
    for hosts, per_host in ((4, 2), (8, 1), (4, 4), (8, 4)):
        for collective in ("alltoall", "alltoallv", "allgather", "bcast"):
            yield Case(name, collective, hosts, per_host, False, powers(8, 65536), machine=CLUSTERS[name].machine)


def checks():
    """Small machines with the names of all contenders that can run there."""
    machines = ((16, 1), (7, 1), (4, 3), (5, 4))
    flat = [*BRUCKS, "multinode_morton", "leader", "leader:bruck", "leader:bruck,radix=4", "leader:multinode_morton",
            "leader:leaders=3", "leader:bruck,leaders=2"]
    for collective, more in (("alltoall", ["multileader", "multileader:leaders=2", "leader+mpi", "bruck+copies", "default",
                                          "mpi"]),
                             ("allgather", ["leader+ring", "mpi"])):
        for hosts, per_host in machines:
            doubling = collective == "allgather" and hosts in (4, 16)
            names = flat + more + (["leader+doubling"] if doubling else [])
            if collective == "allgather" and per_host > 2:  # else it leaves that to MPI
                names = [*names, "default"]
            yield Case("", collective, hosts, per_host, False, [1, 8, 100]), names
    for hosts, per_host in machines:
        for collective in ("alltoallv", "alltoallv-uneven", "alltoallv-sparse"):
            names = [*SLOAVS, "sloavx", "sloavx:radix=4", "sloavx:leaders=2", "leader", "leader:multinode_morton", "multileader",
                     "sloav+phases"]
            yield Case("", collective, hosts, per_host, False, [1, 100, 5000, 40000]), names
        names = ["leader", "leader:radix=4", "leader:segment=1K", "leader:route=scatter", "leader:route=chain", "mpi"]
        yield Case("", "bcast", hosts, per_host, False, [8, 20000, 300000, 3000000]), names
    for collective, names in (("alltoall", ["bruck", "leader", "multileader", "mpi"]), ("alltoallv", ["sloav", "multileader"]),
                              ("bcast", ["leader", "mpi"])):
        for shared in (CLUSTER_OPENMPI, TCP):
            yield Case("", collective, 4, 3, False, [8, 5000, 40000], machine=shared), names
