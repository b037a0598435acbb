// SPDX-License-Identifier: BSD-3-Clause
#include "cpus.h"

#include <smpi/smpi.h>

#include <algorithm>
#include <cstdlib>
#include <simgrid/s4u.hpp>
#include <sstream>

namespace simulate {
namespace {

using simgrid::s4u::Host;

constexpr double kNs = 1e-9;

}  // namespace

NsByBytes::NsByBytes(const std::string& points) {
    std::istringstream in(points);
    for (std::string point; std::getline(in, point, '/');)
        points_.emplace_back(std::atof(point.c_str()), std::atof(point.c_str() + point.find(':') + 1));
}

double NsByBytes::operator()(double bytes) const {
    if (points_.size() == 1 || bytes <= points_[0].first) return points_[0].second;
    std::size_t i = 1;
    while (i + 1 < points_.size() && points_[i].first < bytes) ++i;
    auto [low, low_ns] = points_[i - 1];
    auto [high, high_ns] = points_[i];
    return low_ns + (high_ns - low_ns) * (bytes - low) / (high - low);
}

Cpus::Cpus(const std::unordered_map<std::string, std::string>& words, int ranks)
    : shared_(words.at("cpus") != "0"),
      ranks_(ranks),
      look_s_(std::atof(words.at("look").c_str()) * kNs),
      poll_s_(std::atof(words.at("poll").c_str()) * kNs),
      far_{NsByBytes(words.at("send")), NsByBytes(words.at("receive"))},
      near_{NsByBytes(words.at("near_send")), NsByBytes(words.at("near_receive"))},
      free_s_(std::strtoul(words.at("cpus").c_str(), nullptr, 10)) {
    charge_messages();
}

double Cpus::run(double seconds) { return charge(seconds, false); }

void Cpus::begin() { begun_s_ = simgrid::s4u::Engine::get_clock(); }

// Until it is a rank's turn, as each that waits has one before.
double Cpus::turns_s(double now_s) const {
    if (!shared_) return 0;
    auto busy =
        std::count_if(past_.begin(), past_.end(), [&](const auto& p) { return p.second.end_s >= now_s; });
    return poll_s_ * static_cast<double>(ranks_ - 1 - busy) / static_cast<double>(free_s_.size());
}

double Cpus::charge(double seconds, bool receives) {
    const double now_s = simgrid::s4u::Engine::get_clock();
    Past& past = past_[simgrid::s4u::this_actor::get_pid()];
    const bool waited = now_s > std::max(past.end_s, begun_s_) + kNs / 10;
    if (waited || (receives && !past.received)) seconds += look_s_;
    double start_s = now_s;
    if (shared_) {
        auto cpu = std::min_element(free_s_.begin(), free_s_.end());
        start_s = std::max(*cpu, now_s);
        *cpu = start_s + seconds;
    }
    past = {start_s + seconds + (waited ? turns_s(now_s) : 0), receives};
    return past.end_s - now_s;
}

void Cpus::charge_messages() {
    auto send = [this](std::size_t bytes, const Host* from, const Host* to) {
        return charge((from == to ? near_ : far_).send(static_cast<double>(bytes)) * kNs, false);
    };
    auto receive = [this](std::size_t bytes, const Host* from, const Host* to) {
        return charge((from == to ? near_ : far_).receive(static_cast<double>(bytes)) * kNs, true);
    };
    smpi_register_op_cost_callback(SmpiOperation::SEND, send);
    smpi_register_op_cost_callback(SmpiOperation::ISEND, send);
    smpi_register_op_cost_callback(SmpiOperation::RECV, receive);
}

}  // namespace simulate
