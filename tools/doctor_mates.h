// SPDX-License-Identifier: BSD-3-Clause
//
// Whether processes of a host reach each other's memory as ranks do, tried for real: each offers a memory object and a word of
// private memory, and the others try to open the one and to read the other. Called by doctor.cc. Thread safety: none. Fails:
// what failed is the result.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/doctor_findings.h"

namespace coco::os {
class DescriptorDoor;
}

namespace coco::tools {

// What a process offers, as others are told of it.
struct Offer {
    std::int64_t rank = 0;
    std::string host;  // what tells hosts apart: equal for processes of one kernel
    std::int64_t process = 0, descriptor = -1;
    std::uint64_t cookie = 0;   // what is in the object, and in the word
    std::uint64_t address = 0;  // of the word
};

// The offered memory lives as long as this.
class Offered {
  public:
    explicit Offered(std::int64_t rank);
    ~Offered();
    Offered(const Offered&) = delete;
    Offered& operator=(const Offered&) = delete;
    const Offer& offer() const { return offer_; }
    // Passes the descriptor to mates by sockets, which all of them do at once. Returns: of which one came back.
    std::vector<bool> pass(const std::vector<Offer>& mates);

  private:
    Offer offer_;
    std::unique_ptr<std::uint64_t> word_;
    std::unique_ptr<os::DescriptorDoor> door_;
};

// What could not be done with a mate's memory, as errno says, and what helps; 0: all is well.
struct Reach {
    std::int64_t mate = 0;
    int open_error = 0, read_error = 0;
    std::string open_remedy, read_remedy;
    bool passed = false;  // the descriptor came over a socket instead
};
Reach try_mate(const Offer& mate);
// Whether passing descriptors may help.
bool is_closed(const Reach& reach);

// Two child processes try it with each other: for a process that has no mates.
void check_between_children(Findings& findings);
// What ranks have tried with each other. from: by the rank that tried.
struct Tried {
    std::int64_t rank = 0;
    std::vector<Reach> failed;
};
void check_between_ranks(const std::vector<Tried>& tried, Findings& findings);

}  // namespace coco::tools
