// SPDX-License-Identifier: BSD-3-Clause
//
// toml++ as this room uses it: compiled in, without exceptions. Its shared library has them, and libcoco.so must not
// bring further libraries into a program.
#pragma once
#undef TOML_HEADER_ONLY
#undef TOML_SHARED_LIB
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>
