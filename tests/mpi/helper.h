// SPDX-License-Identifier: BSD-3-Clause
//
// A second thread of a test program, which calls in turns with the first.
#pragma once
#include <functional>
#include <future>
#include <thread>
#include <utility>

namespace test {

// A thread that does one thing at a time, while its asker waits.
class Helper {
  public:
    ~Helper() {
        work_.set_value({});
        thread_.join();
    }
    void run(std::function<void()> work) {
        done_ = {};
        auto done = done_.get_future();
        work_.set_value(std::move(work));
        done.wait();
    }

  private:
    void loop() {
        for (;;) {
            std::function<void()> work = work_.get_future().get();
            if (!work) return;
            work();
            work_ = {};
            done_.set_value();
        }
    }
    std::promise<std::function<void()>> work_;
    std::promise<void> done_;
    std::thread thread_{[this] { loop(); }};
};

}  // namespace test
