// SPDX-License-Identifier: BSD-3-Clause
//
// The output of `coco info`. Called by the command only. Fails: an exit status of 2 after one line on stderr.
#pragma once
#include <cstdint>
#include <string>

namespace coco::tools {

// program: the one whose MPI library is described; empty: all libraries that the loader finds.
int info(const std::string& program);
int list_algorithms();
// docs/environment.md's table.
int settings_markdown();
struct Question {
    std::string collective, ranks, block;
    std::int32_t nodes = 1;
    std::uint64_t degree = 0, calls = 1;  // degree: neighbours' edges to other nodes
};
int explain(const Question& question);

}  // namespace coco::tools
