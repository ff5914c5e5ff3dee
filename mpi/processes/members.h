// SPDX-License-Identifier: Apache-2.0
// Purpose: whether all processes of a communicator have Tombolo. One that has not goes straight to
// the host MPI's own creation of a window, so that the others must not wait for its answer: they
// know beforehand, from facts that it has no part in.
//
// A process with Tombolo leaves a mark on its host before it initializes the MPI. The host MPI's
// initialization lets none return before all of the world on one host have begun it, so that a
// process of a world whose mark is missing has no Tombolo. In a world over several hosts the marks
// are keys in the launcher's store (key_holders.h). Processes of other worlds are known by
// their parents' and children's agreement (spawning.h). Where neither says anything of a world,
// because its launcher has no such store or does not name it, all of its processes are assumed to
// have Tombolo, and a line tells of those that do not answer (roll_call.h).
//
// Invariants: WT1 each of the groups that are kept holds processes with Tombolo only, and is kept
//                 by all its members. So where the members of a communicator are all in such a
//                 group, all of them know it, and else none finds one.
//             WT2 the answer for a communicator never changes, but from assumed to called.
// Thread safety: any thread; announce_process() before all else.
#pragma once

#include <cstdint>

#include "host/mpi/mpi_header.h"
#include "runtime/host_mpi/world_name.h"

namespace tombolo::mpi {

// Called in front of the MPI's initialization, by MPI_Init or a session. It calls no MPI.
void announce_process(bool by_session);
// Called behind MPI_Init, and not by a session alone, which has no MPI_COMM_WORLD. Where that is on
// several hosts, those of its processes that are announced learn of each other.
void note_world();
// The name of the world, as it was in front of the initialization.
const runtime::WorldName& own_world();

enum class Company : std::uint8_t {
  without,  // some have no Tombolo, or may have none
  assumed,  // all are taken to have it: a window may rely on it, since no other way is left
  called,  // as assumed, and all have answered for this communicator, or some might not call the roll
  known,  // all have it
};
// Of an intracommunicator; local. Cheap when it is asked again.
Company company_of(MPI_Comm comm);
// All processes call it where their company is assumed: they have answered each other.
void note_all_have_answered(MPI_Comm comm);
// Both groups of an intercommunicator, of which all processes have agreed.
void note_all_have_tombolo(MPI_Comm inter);

// Called in front of MPI_Finalize.
void forget_members();

}  // namespace tombolo::mpi
