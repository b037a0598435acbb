// SPDX-License-Identifier: BSD-3-Clause
//
// When libcoco wakes and sleeps: what the doors of MPI_Init, MPI_Finalize and their sisters, and of the
// functions that make and free communicators call. Thread safety: any thread that may call these functions.
#pragma once
#include "comm/bond.h"
#include "dispatch/in_force.h"
#include "dispatch/inside.h"
#include "mpi/library.h"

namespace coco::dispatch {

// Around MPI_Init and its sisters: settings are read and checked, then the MPI library starts; a wrong
// setting ends the job with one line. Requires (after_init): all ranks of the world call it; they agree there
// that they have equal settings.
void before_init();
void after_init();
// Around MPI_Session_init. A program of sessions alone has no MPI_Finalize: its report is made when it exits.
void before_session_init();
void after_session_init(mpi::Session session);
// Ends a communicator by pass_on, which is MPI_Comm_free or MPI_Comm_disconnect.
int end_communicator(int (*pass_on)(void*), void* comm);
// Runs a function that makes a communicator from a parent, on all ranks of the parent: pass_on calls it and
// puts the new communicator into `made`. (Functions that duplicate one need no door: MPI copies attributes.)
template <class PassOn>
int make_communicator(mpi::Comm parent, const void* made, PassOn pass_on) {
    if (t_inside != 0) return pass_on();
    Inside inside;
    const int result = pass_on();
    if (result == mpi::kSuccess) comm::bind_child(mpi::narrow(parent), mpi::load<mpi::Comm>(made));
    return result;
}
// Runs MPI_Comm_create_group, which has no identity to give: only the ranks of the group call it.
template <class PassOn>
int make_group_communicator(PassOn pass_on) {
    const comm::WithoutCopies without;
    return pass_on();
}
// Called before MPI_Comm_idup of Open MPI.
void before_idup();
// Called before MPI_Finalize: makes the report, and frees what we own of MPI.
void before_finalize();
// Called when it has returned: gives back the memory of other ranks, if MPI has ended and no session was ever
// opened.
void after_finalize();

}  // namespace coco::dispatch
