// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/instead.h"

#include "comm/comm.h"
#include "dispatch/lifecycle.h"

namespace coco::dispatch {

bool choose_instead(mpi::Comm handle, std::string_view collective, std::string_view choice) {
    const auto known = base::collective_of(collective);
    if (!known || is_switched_off() || !wake()) return false;
    choose::Instead instead;
    if (choice == "rules") {
        instead.kind = choose::Instead::Kind::rules;
    } else if (!choice.empty()) {
        instead.kind = choose::Instead::Kind::choice;
        if (policy::parse_choice(choice, *known, instead.choice)) return false;
    }
    comm::Comm* comm = comm::of(handle);
    if (comm->unused != nullptr || comm->closed != stats::Reason::none) return false;
    comm->choices.put_instead(*known, instead);
    comm::forget_handles();  // and with them the choices that threads remember
    return true;
}

}  // namespace coco::dispatch
