// SPDX-License-Identifier: BSD-3-Clause
//
// A check that fails ends the process with one line that says what is not true, and where.
#include "base/check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <string>

namespace {

struct End {
    int status = 0;
    std::string said;
};

// Runs it in a child.
template <class Act>
End end_of(Act act) {
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        std::signal(SIGABRT, SIG_DFL);  // not the test framework's
        dup2(pipe_ends[1], STDERR_FILENO);
        act();
        _exit(0);
    }
    close(pipe_ends[1]);
    End end;
    char bytes[512];
    for (ssize_t n = 0; (n = read(pipe_ends[0], bytes, sizeof bytes)) > 0;)
        end.said.append(bytes, static_cast<std::size_t>(n));
    close(pipe_ends[0]);
    waitpid(child, &end.status, 0);
    return end;
}

}  // namespace

TEST_CASE("a check that fails ends the process with one line", "[check]") {
    const End end = end_of([] { COCO_CHECK(1 + 1 == 3, "one and one make three"); });
    CHECK(WIFSIGNALED(end.status));
    CHECK(WTERMSIG(end.status) == SIGABRT);
    CHECK(end.said.find("not true: one and one make three (check_test.cc:") != std::string::npos);
    // An emulator of another processor says a line of its own behind it.
    CHECK(end.said.find("coco") == 0);
    CHECK(end.said.find("coco", end.said.find('\n')) == std::string::npos);
    CHECK(end.said.ends_with('\n'));
}

// It may allocate, while the thread holds the allocator's lock.
TEST_CASE("a check that fails asks no handler of the program's", "[check]") {
    const End end = end_of([] {
        std::signal(SIGABRT, [](int) { _exit(3); });
        COCO_CHECK(1 + 1 == 3, "one and one make three");
    });
    CHECK(WIFSIGNALED(end.status));
    CHECK(WTERMSIG(end.status) == SIGABRT);
}

TEST_CASE("a check that holds says nothing", "[check]") {
    const End end = end_of([] { COCO_CHECK(1 + 1 == 2, "one and one make two"); });
    CHECK(end.status == 0);
    CHECK(end.said.empty());
}

TEST_CASE("dear checks are compiled in only where they are asked for", "[check]") {
    const End end = end_of([] { COCO_CHECK_DEAR(1 + 1 == 3, "one and one make three"); });
#ifdef COCO_DEAR_CHECKS
    CHECK(WIFSIGNALED(end.status));
#else
    CHECK(end.status == 0);
#endif
}
