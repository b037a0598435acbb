// SPDX-License-Identifier: BSD-3-Clause
#include "tools/child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace coco::tools {
namespace {

// What a child writes to the descriptor that `body` gets; body does not return.
std::string read_from_child(const std::function<void(int)>& body) {
    int ends[2];
    if (pipe(ends) != 0) return {};
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        body(ends[1]);
        _exit(1);
    }
    close(ends[1]);
    std::string text;
    char part[4096];
    for (ssize_t n; child > 0 && (n = read(ends[0], part, sizeof part)) > 0;)
        text.append(part, static_cast<std::size_t>(n));
    close(ends[0]);
    if (child > 0) waitpid(child, nullptr, 0);
    return text;
}

}  // namespace

std::string text_of_child(const std::function<std::string()>& work) {
    return read_from_child([&](int end) {
        dup2(2, 1);  // what a library has to say as it is loaded is no output of the command
        const std::string text = work();
        _exit(write(end, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    });
}

std::vector<char*> as_arguments(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    return arguments;
}

std::string output_of(const std::vector<std::string>& command, const std::vector<Change>& changes,
                      unsigned limit_s) {
    return read_from_child([&](int end) {
        for (int output : {1, 2}) dup2(end, output);
        close(end);
        for (const auto& [name, value] : changes)
            value != nullptr ? setenv(name.c_str(), value, 1) : unsetenv(name.c_str());
        alarm(limit_s);
        execv(command.front().c_str(), as_arguments(command).data());
    });
}

}  // namespace coco::tools
