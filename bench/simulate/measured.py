# SPDX-License-Identifier: BSD-3-Clause
"""What messages cost on a cluster of namespaces, from what bench/message_cost measured there (docs/simulation.md)."""
import pathlib
import re

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results" / "message-cost-2-cores.txt"
FORM = "4 hosts, 4 ranks a host"
RANKS, FAR, NEAR, CPUS = 16, 12, 3, 2  # there: of a rank's peers
EAGER_BYTES = 4096


def rows(flavour):
    """Nanoseconds by what was measured and bytes, on FORM."""
    found, place = {}, []
    for line in RESULTS.read_text().splitlines():
        if line.startswith("== "):
            place = [line[3:]]
        elif " hosts, " in line:
            place.append(line)
        elif place == [flavour, FORM] and (match := re.fullmatch(r"(\w.*?) +(\d+) +(-?\d+)", line)):
            found[match[1], int(match[2])] = float(match[3])
    return found


def mean(values):
    values = list(values)
    return sum(values) / len(values)


class Costs:
    """Nanoseconds of a CPU. In a ring each message is looked for alone, in an exchange all of a call together."""

    def __init__(self, flavour):
        of = rows(flavour)
        self.sizes = sorted(size for what, size in of if what == "ring far")
        eager = [size for size in self.sizes if size <= EAGER_BYTES]
        # A look for messages that have come: MPICH's costs no more than what an exchange scatters by.
        self.look = max(0, mean(of["ring far", s] - of["exchange far", s] for s in eager) * FAR / (FAR - 1))
        # Who waits looks again and again; where all others do, a rank that can go on waits for its turn.
        self.poll = mean(of["one way far waiting", s] - of["one way far asleep", s] for s in eager) * CPUS / (RANKS - 2)
        # A message: sent, and received.
        self.far = self.least({s: of["exchange far", s] - self.look / FAR for s in self.sizes})
        self.near = self.least({s: max(of["exchange near", s] - self.look / NEAR, of.get(("exchange more near", s), 0))
                                for s in self.sizes})
        self.send_share = mean(of["send fan far", s] for s in eager) / mean(self.far[s] for s in eager)

    def least(self, costs):
        """No message costs more than a longer one: what says so is noise."""
        return {size: min(cost for longer, cost in costs.items() if longer >= size) for size in costs}

    def points(self, costs, share):
        return "/".join(f"{size}:{costs[size] * share:.0f}" for size in self.sizes)

    def words(self, cpus, poll):
        """For class Cpus (cpus.h)."""
        share = self.send_share
        return (f"cpus={cpus}", f"send={self.points(self.far, share)}", f"receive={self.points(self.far, 1 - share)}",
                f"near_send={self.points(self.near, share)}", f"near_receive={self.points(self.near, 1 - share)}",
                f"look={self.look:.0f}", f"poll={poll:.0f}")
