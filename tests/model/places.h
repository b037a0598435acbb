// SPDX-License-Identifier: BSD-3-Clause
//
// Which line of the library's sources an atomic operation is in, from what the compiler noted for debuggers.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "explorer.h"

namespace coco::model {

struct Line {
    std::string file;  // sync/flag.cc
    int number = 0;
    std::string text;  // without the spaces around it
    auto operator<=>(const Line&) const = default;
};

// Places that are in lib/sync or lib/channel, each with its line.
std::map<Place, Line> lines_of(const std::set<Place>& places);
// The lines of lib/sync and lib/channel that name an order other than relaxed.
std::set<Line> ordered_lines();

}  // namespace coco::model
