// SPDX-License-Identifier: BSD-3-Clause
//
// A thread that counts in the eight bytes right before and right behind a range, as a program may while a
// collective uses the range. It loses a count where somebody moves these bytes to other memory. Called by
// tests, which check done().
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

namespace test {

class CountingNeighbor {
  public:
    // Returns when the thread has counted. Requires: the eight bytes on either side are nobody's.
    CountingNeighbor(void* begin, void* end)
        : sides_{static_cast<char*>(begin) - 8, static_cast<char*>(end)} {
        for (char* side : sides_) std::memset(side, 0, 8);
        thread_ = std::thread([this] { count(); });
        while (!has_counted_.load()) std::this_thread::yield();
    }
    ~CountingNeighbor() { done(); }
    CountingNeighbor(const CountingNeighbor&) = delete;
    CountingNeighbor& operator=(const CountingNeighbor&) = delete;

    // Ends the thread. Returns: whether it lost no count.
    bool done() {
        stop_.store(true);
        if (thread_.joinable()) thread_.join();
        for (int side = 0; side < 2; ++side) lost_ = lost_ || seen(side) != counts_[side];
        return !lost_;
    }

  private:
    void count() {
        for (std::uint64_t turn = 1; !stop_.load(); ++turn) {
            for (int side = 0; side < 2; ++side) {
                lost_ = lost_ || seen(side) != counts_[side];
                ++counts_[side];
                std::memcpy(sides_[side], &counts_[side], 8);
            }
            has_counted_.store(true);
            // Now and then it leaves the CPU to the ranks.
            if (turn % 256 == 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
    }
    std::uint64_t seen(int side) const {
        std::uint64_t count = 0;
        std::memcpy(&count, sides_[side], 8);
        return count;
    }

    char* sides_[2];
    std::uint64_t counts_[2] = {};  // the thread's until it has ended
    bool lost_ = false;
    std::atomic<bool> has_counted_{false}, stop_{false};
    std::thread thread_;
};

}  // namespace test
