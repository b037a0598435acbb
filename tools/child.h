// SPDX-License-Identifier: BSD-3-Clause
//
// Work that a child process does, so that whatever it loads or breaks is gone with it. Called by the command
// only. Thread safety: none; the caller has one thread. Fails: an empty text.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace coco::tools {

// The text that `work` makes in a child process; what it has made so far is lost if it crashes.
std::string text_of_child(const std::function<std::string()>& work);

// An environment variable and the value that it gets; null: it is taken away.
using Change = std::pair<std::string, const char*>;
// What a program prints, on stdout and stderr, that is started with these words in an environment with these
// changes. After limit_s seconds the kernel ends it.
std::string output_of(const std::vector<std::string>& command, const std::vector<Change>& changes,
                      unsigned limit_s);

// The words as execv takes them; they live as long as the command.
std::vector<char*> as_arguments(const std::vector<std::string>& command);

}  // namespace coco::tools
