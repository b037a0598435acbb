// SPDX-License-Identifier: BSD-3-Clause
// fork in all its ways: parent, child and grandchild each see their own data, and a fork amid busy threads
// works.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "expect.h"

extern char** environ;

namespace {

constexpr std::size_t kBytes = 20u << 20;

bool all_are(const std::vector<char>& data, char value) {
    for (char c : data)
        if (c != value) return false;
    return true;
}

int exit_code(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

// Allocates and frees much, which must stay within this process.
void churn() {
    for (int i = 0; i < 2000; ++i) {
        std::string text(static_cast<std::size_t>(i) * 37 % 5000 + 1, 'c');
        std::vector<int> numbers(static_cast<std::size_t>(i) % 3000 + 1, i);
        if (text[0] != 'c' || numbers.back() != i) std::abort();
    }
}

// Parent and child write all of a block, then each looks for its own value after the other has written.
void check_own_data(int depth) {
    std::vector<char> data(kBytes, 'a');
    int to_child[2], to_parent[2];
    EXPECT(pipe(to_child) == 0 && pipe(to_parent) == 0);
    char token = 0;
    pid_t child = fork();
    if (child == 0) {
        bool inherited = all_are(data, 'a') && !lies_on_shared_heap(data.data());
        std::memset(data.data(), 'c', kBytes);
        churn();
        (void)!write(to_parent[1], "x", 1);
        (void)!read(to_child[0], &token, 1);
        EXPECT(inherited && all_are(data, 'c'));
        if (depth > 0) check_own_data(depth - 1);
        exit(failures());  // runs destructors and atexit functions on the copied heap
    }
    std::memset(data.data(), 'p', kBytes);  // at once: the child's copy must be complete already
    churn();
    (void)!read(to_parent[0], &token, 1);
    EXPECT(all_are(data, 'p'));
    (void)!write(to_child[1], "x", 1);
    EXPECT(exit_code(child) == 0);
    for (int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) close(fd);
}

void check_busy_threads() {
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&] {
            while (!stop) churn();
        });
    for (int i = 0; i < 10; ++i) {
        pid_t child = fork();
        if (child == 0) {
            churn();
            _exit(0);
        }
        EXPECT(exit_code(child) == 0);
    }
    stop = true;
    for (auto& t : threads) t.join();
}

void check_programs() {
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/true", "true", nullptr);
        _exit(9);
    }
    EXPECT(exit_code(child) == 0);
    char name[] = "true";
    char* arguments[] = {name, nullptr};
    EXPECT(posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments, environ) == 0);
    EXPECT(exit_code(child) == 0);
    EXPECT(system("exit 3") == 3 << 8);
    FILE* out = popen("echo told", "r");
    char line[16] = {};
    EXPECT(out != nullptr && std::fgets(line, sizeof line, out) != nullptr &&
           std::strcmp(line, "told\n") == 0);
    EXPECT(pclose(out) == 0);
}

// A process that has closed what it did not open (as daemons do) still gives its child a whole copy.
void check_closed_descriptors() {
    std::vector<char> data(kBytes, 'd');
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    pid_t child = fork();
    if (child == 0) _exit(all_are(data, 'd') && !lies_on_shared_heap(data.data()) ? 0 : 1);
    EXPECT(exit_code(child) == 0);
}

// A child without a free descriptor has its whole copy, too, before its parent goes on.
void check_no_descriptors() {
    rlimit before{};
    EXPECT(getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit none{0, before.rlim_max};
    std::vector<std::vector<char>> blocks(kBytes / 50'000, std::vector<char>(50'000, 'n'));  // small: shared
    EXPECT(setrlimit(RLIMIT_NOFILE, &none) == 0);
    pid_t child = fork();
    if (child != 0)
        for (std::size_t i = blocks.size(); i-- > 0;) blocks[i].assign(blocks[i].size(), 'p');
    if (child == 0) {
        bool good = true;
        for (const std::vector<char>& block : blocks) good = good && all_are(block, 'n');
        _exit(good ? 0 : 1);
    }
    EXPECT(setrlimit(RLIMIT_NOFILE, &before) == 0);
    EXPECT(exit_code(child) == 0);
}

// Memory in thousands of mappings, as collectors and checkpointers make them that watch pages: each is
// copied, and stays shut. (That this takes no longer than plain is for bench/heap_harm.)
void check_many_mappings() {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    constexpr std::size_t kPages = 8000;
    auto* pages = static_cast<char*>(aligned_alloc(page, kPages * page));
    for (std::size_t i = 0; i < kPages; ++i) pages[i * page] = static_cast<char>(i);
    for (std::size_t i = 0; i < kPages; i += 2) EXPECT(mprotect(pages + i * page, page, PROT_READ) == 0);
    pid_t child = fork();
    if (child == 0) {
        bool good = true;
        for (std::size_t i = 0; i < kPages; ++i) good = good && pages[i * page] == static_cast<char>(i);
        const int zeros =
            open("/dev/zero", O_RDONLY);  // the kernel tells what may be written without a signal
        good = good && read(zeros, pages, 1) == -1 && read(zeros, pages + page, 1) == 1;
        _exit(good ? 0 : 1);
    }
    EXPECT(exit_code(child) == 0);
    EXPECT(mprotect(pages, kPages * page, PROT_READ | PROT_WRITE) == 0);
    free(pages);
}

// Pages of the heap that the program shut, or keeps from its children, do not stop the copy of the others.
void check_pages_out_of_reach() {
    std::vector<char> data(kBytes, 'o');
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    auto* pages = static_cast<char*>(aligned_alloc(page, 3 * page));
    std::memset(pages, 'h', 3 * page);
    EXPECT(mprotect(pages, page, PROT_NONE) == 0);
    EXPECT(madvise(pages + page, page, MADV_DONTFORK) == 0);
    pid_t child = fork();
    if (child == 0) _exit(all_are(data, 'o') && pages[2 * page] == 'h' ? 0 : 1);
    EXPECT(exit_code(child) == 0);
    EXPECT(madvise(pages + page, page, MADV_DOFORK) == 0);
    EXPECT(mprotect(pages, page, PROT_READ | PROT_WRITE) == 0);
    free(pages);
}

// The child is charged for what the heap holds, not for all that it might.
void check_small_data_limit() {
    rlimit before{};
    EXPECT(getrlimit(RLIMIT_DATA, &before) == 0);
    rlimit small{256u << 20, before.rlim_max};
    EXPECT(setrlimit(RLIMIT_DATA, &small) == 0);
    pid_t child = fork();
    if (child == 0) {
        churn();
        _exit(0);
    }
    EXPECT(exit_code(child) == 0);
    EXPECT(setrlimit(RLIMIT_DATA, &before) == 0);
}

// A fork that the system refuses leaves the parent as it was.
void check_refused_fork() {
    if (geteuid() == 0 && setuid(65534) != 0) return;  // the limit does not bind root
    rlimit none{0, 0};
    EXPECT(setrlimit(RLIMIT_NPROC, &none) == 0);
    EXPECT(fork() == -1);
    churn();
}

}  // namespace

int main(int count, char** arguments) {
    std::vector<char> probe(1000);
    bool expected = count > 1 && std::strcmp(arguments[1], "shared") == 0;
    EXPECT(lies_on_shared_heap(probe.data()) == expected);
    check_own_data(1);
    check_busy_threads();
    check_programs();
    check_pages_out_of_reach();
    check_small_data_limit();
    check_many_mappings();
    check_no_descriptors();
    check_closed_descriptors();
    check_refused_fork();
    return failures();
}
