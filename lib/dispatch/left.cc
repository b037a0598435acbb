// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/left.h"

#include "base/of_thread.h"

namespace coco::dispatch {

constinit thread_local LeftCalls* t_left_calls = nullptr;

LeftCalls::~LeftCalls() { t_left_calls = nullptr; }

namespace {

LeftCalls& left_calls() {
    if (t_left_calls == nullptr) t_left_calls = &base::of_thread<LeftCalls, LeftCalls>();
    return *t_left_calls;
}

}  // namespace

void remember_left_for_good(const Args& args, std::uint64_t generation) {
    left_calls().place_of(args).for_good = {generation, args.comm};
}

void remember_left_unused(const Args& args, const comm::UnusedCalls& calls, std::uint64_t generation) {
    left_calls().place_of(args).unused = {generation, args.comm, args.recv.type, args.recv.count, calls};
}

void remember_left_by_choice(const Args& args, const LeftByChoice& left) {
    left_calls().place_of(args).by_choice = left;
}

}  // namespace coco::dispatch
