// SPDX-License-Identifier: BSD-3-Clause
// Memory to which glibc itself writes in a forked child, before any handler of fork: other threads' values of
// keys beyond the first 32, and the locks of open files. The parent's must stay as they were.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "expect.h"

namespace {

void fork_and_wait() {
    pid_t child = fork();
    if (child == 0) {
        std::FILE* out = std::fopen("/dev/null", "w");
        std::fprintf(out, "%d\n", 1);
        std::fclose(out);
        free(malloc(10000));
        _exit(0);
    }
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

void check_values_of_keys() {
    std::vector<pthread_key_t> keys(100);
    for (pthread_key_t& key : keys) EXPECT(pthread_key_create(&key, nullptr) == 0);
    std::atomic<int> stage{0};
    int wrong = 0;
    std::thread other([&] {
        for (pthread_key_t& key : keys) pthread_setspecific(key, &key);
        stage = 1;
        while (stage == 1) usleep(100);
        for (pthread_key_t& key : keys) wrong += pthread_getspecific(key) != &key;
    });
    while (stage == 0) usleep(100);
    fork_and_wait();
    stage = 2;
    other.join();
    EXPECT(wrong == 0);
}

// A lock that the child resets lets a second thread in, or is never free again.
void check_locks_of_files() {
    std::FILE* file = std::tmpfile();
    EXPECT(file != nullptr);
    std::atomic<int> stage{0};
    std::atomic<bool> inside{false}, met{false};
    std::thread holder([&] {
        flockfile(file);
        inside = true;
        stage = 1;
        while (stage == 1) usleep(100);
        usleep(50000);
        inside = false;
        funlockfile(file);
    });
    while (stage == 0) usleep(100);
    fork_and_wait();
    stage = 2;
    std::thread second([&] {
        flockfile(file);
        if (inside) met = true;
        funlockfile(file);
    });
    holder.join();
    second.join();
    EXPECT(!met);
    std::fclose(file);
}

// Threads that print and allocate while another forks.
void check_storm() {
    std::FILE* file = std::fopen("/dev/null", "w");
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&] {
            while (!stop) {
                char* text = static_cast<char*>(malloc(300));
                std::fprintf(file, "%p %d\n", static_cast<void*>(text), t);
                free(text);
            }
        });
    for (int i = 0; i < 30; ++i) fork_and_wait();
    stop = true;
    for (auto& thread : threads) thread.join();
    std::fclose(file);
}

}  // namespace

int main() {
    check_values_of_keys();
    check_locks_of_files();
    check_storm();
    return failures();
}
