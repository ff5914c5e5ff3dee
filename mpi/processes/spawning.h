// SPDX-License-Identifier: Apache-2.0
// Purpose: processes that MPI_Comm_spawn starts. They get the preloaded library and its settings
// where the launcher does not hand them on (Open MPI's takes them by an info key), and they and
// their parents find out about each other, whether all have Tombolo (members.h).
//
// The parents' root takes a mark before the children start, the first child takes one before it
// initializes its MPI, and both look for the other's mark once they are connected. Each knows then,
// without a message, whether the other has Tombolo; only if so they tell each other of the rest, by
// a message in each direction, before the program has the intercommunicator.
//
// Invariants: SW1 no message is sent to a process without Tombolo, and none is waited for from one.
//             SW2 all parents and all children note that they have Tombolo, or none does.
// Thread safety: as the MPI calls.
#pragma once

#include <functional>
#include <span>

#include "host/mpi/mpi_header.h"

namespace tombolo::mpi {

struct Spawning {
  int root;
  MPI_Comm comm;
  // At the root: of each command.
  std::span<const MPI_Info> infos;
  std::span<const int> processes;
  MPI_Comm* inter;
};

// Makes `call` with the infos that the children need, and meets them.
int spawn(const Spawning& spawning, const std::function<int(const MPI_Info*)>& call);

// MPI_Init, of which `call` is the host's part: the process is announced (members.h), and a child
// meets its parents.
int initialize(const std::function<int()>& call);

}  // namespace tombolo::mpi
