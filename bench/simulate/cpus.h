// SPDX-License-Identifier: BSD-3-Clause
//
// The cost of messages to CPUs, as measured on a machine (bench/message_cost): by bytes, between hosts and
// within one, and for waking up. The ranks of all hosts may share the CPUs, as on a cluster of namespaces:
// then work is done in the order in which it comes up, and each piece to its end.
#pragma once
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace simulate {

// Nanoseconds by bytes: straight lines between the points known, the last one's slope beyond.
class NsByBytes {
  public:
    // "8:6000/4096:7000": at 8 bytes 6000 ns, at 4096 7000.
    explicit NsByBytes(const std::string& points);
    double operator()(double bytes) const;

  private:
    std::vector<std::pair<double, double>> points_;
};

struct MessageCosts {
    NsByBytes send, receive;
};

class Cpus {
  public:
    // `words`: cpus=N that all ranks share (0: one for each); send, receive, near_send, near_receive, of
    // messages to other hosts and within one: NsByBytes; look=NS to look for what has come; poll=NS that the
    // look of a rank takes that waits in vain: all who wait have their turns. Has SMPI charge its messages by
    // that.
    Cpus(const std::unordered_map<std::string, std::string>& words, int ranks);

    // The calling rank has work for `seconds` from now on. Returns: seconds until it is done.
    double run(double seconds);
    // A small message's part, to or from another host.
    double send_s() const { return far_.send(0) * 1e-9; }
    double receive_s() const { return far_.receive(0) * 1e-9; }
    // All ranks are at work now: who comes next has not waited.
    void begin();

  private:
    struct Past {
        double end_s = 0;       // of its work
        bool received = false;  // was the last that it did
    };
    void charge_messages();
    double charge(double seconds, bool receives);
    double turns_s(double now_s) const;

    const bool shared_;
    const int ranks_;
    const double look_s_, poll_s_;
    const MessageCosts far_, near_;
    std::vector<double> free_s_;  // by CPU: when
    double begun_s_ = 0;
    std::unordered_map<long, Past> past_;  // by rank's actor
};

}  // namespace simulate
