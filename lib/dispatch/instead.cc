// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/instead.h"

#include "comm/find.h"
#include "comm/handles.h"
#include "dispatch/in_force.h"

namespace coco::dispatch {
namespace {

// Null: calls are not chosen for there, or not yet.
comm::Comm* open_comm(mpi::Comm handle) {
    if (is_switched_off() || !wake()) return nullptr;
    comm::Comm* comm = comm::of(handle);
    return comm->closed == stats::Reason::none ? comm : nullptr;
}

}  // namespace

bool choose_instead(mpi::Comm handle, std::string_view collective, std::string_view choice) {
    const auto known = base::collective_of(collective);
    if (!known) return false;
    choose::Instead instead;
    if (choice == "rules") {
        instead.kind = choose::Instead::Kind::rules;
    } else if (!choice.empty()) {
        instead.kind = choose::Instead::Kind::choice;
        if (policy::parse_choice(choice, *known, instead.choice)) return false;
    }
    comm::Comm* comm = open_comm(handle);
    if (comm == nullptr) return false;
    comm->choices.put_instead(*known, instead);
    comm::forget_handles();  // and with them the choices that threads remember
    return true;
}

bool facts_of(mpi::Comm handle, policy::Facts& facts) {
    const comm::Comm* comm = open_comm(handle);
    if (comm == nullptr) return false;
    facts = comm->facts();
    if (comm->neighbors != nullptr && comm->neighbors->closed == stats::Reason::none)
        facts.degree = comm->degree();
    return true;
}

void forget_what_was_learned() { the_journal().forget(); }

}  // namespace coco::dispatch
