// SPDX-License-Identifier: BSD-3-Clause
#include "base/of_thread.h"

#include <pthread.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

using coco::base::of_thread;

namespace {

std::atomic<int> g_made{0}, g_alive{0};
struct Counted {
    Counted() { ++g_made, ++g_alive; }
    ~Counted() { --g_alive; }
    int value = 0;
};
struct First {};
struct Second {};

// A thread's object that is older than those of of_thread(), and uses them when it ends.
struct Elder {
    ~Elder() {
        CHECK(of_thread<Counted, First>().value == 0);
        of_thread<Counted, Second>().value = 7;
    }
};

void use_at_end_of_key(void*) { of_thread<Counted, Second>().value = 8; }

}  // namespace

TEST_CASE("a thread's objects are its own, and one of each user", "[base]") {
    of_thread<Counted, First>().value = 1;
    of_thread<Counted, Second>().value = 2;
    std::thread([] { CHECK(of_thread<Counted, First>().value == 0); }).join();
    CHECK(of_thread<Counted, First>().value == 1);
    CHECK(of_thread<Counted, Second>().value == 2);
}

TEST_CASE("a thread's objects end with it, also those that the ends of others ask for", "[base]") {
    pthread_key_t key{};
    REQUIRE(pthread_key_create(&key, use_at_end_of_key) == 0);
    const int alive = g_alive, made = g_made;
    std::thread([&] {
        static thread_local Elder elder;
        static_cast<void>(&elder);
        pthread_setspecific(key, &key);
        of_thread<Counted, First>().value = 0;
    }).join();
    CHECK(g_made >= made + 3);
    CHECK(g_alive == alive);
    pthread_key_delete(key);
}
