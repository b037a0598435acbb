// SPDX-License-Identifier: BSD-3-Clause
// Fuzz target: an invented machine, "nodes=N,domains=M" or a synthetic description of hwloc's, and ranks that
// are dealt to it.
#include "fuzz.h"
#include "os/probe.h"
#include "topology/node_map.h"

namespace {

using namespace coco;

void check_deal(const topology::Invented& machine, std::int32_t ranks, std::int32_t rank) {
    const topology::Seat seat = topology::deal(machine, ranks, rank);
    REQUIRE_TRUE(seat.node >= 0 && seat.node < machine.nodes, "node of a rank");
    REQUIRE_TRUE(seat.domain >= 0 && seat.domain < machine.domains, "domain of a rank");
    if (rank == 0) return;
    const topology::Seat before = topology::deal(machine, ranks, rank - 1);
    REQUIRE_TRUE(before.node < seat.node || (before.node == seat.node && before.domain <= seat.domain),
                 "order of ranks");
}

// The machine's own text invents it once more.
void check_text(const topology::Invented& machine) {
    const std::string text =
        "nodes=" + std::to_string(machine.nodes) + ",domains=" + std::to_string(machine.domains);
    std::string error;
    const auto again = os::invented_machine(text, error);
    REQUIRE_TRUE(again && again->nodes == machine.nodes && again->domains == machine.domains,
                 text + ": " + error);
}

}  // namespace

// hwloc forgets some memory when it refuses a description. The address sanitizer asks for this by its name.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libhwloc"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const auto rank = input.number<std::uint16_t>(), further = input.number<std::uint16_t>();
    std::string error;
    const auto machine = os::invented_machine(input.rest(), error);
    if (!machine) {
        REQUIRE_TRUE(fuzz::is_one_line(error), error);
        return 0;
    }
    REQUIRE_TRUE(machine->nodes >= 1 && machine->domains >= 1, input.rest());
    check_text(*machine);
    check_deal(*machine, rank + 1 + further, rank);
    return 0;
}
