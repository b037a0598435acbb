// SPDX-License-Identifier: BSD-3-Clause
//
// The standard headers that most files of the library include, compiled ahead where a build asks for that
// (b_pch): a fresh build then takes a fifth less. Files include themselves what they use; scripts/check_tidy
// compiles them without this one.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
