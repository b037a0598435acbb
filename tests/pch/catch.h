// SPDX-License-Identifier: BSD-3-Clause
//
// Catch2 and the standard headers that it brings, compiled ahead where a build asks for that (b_pch).
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>
