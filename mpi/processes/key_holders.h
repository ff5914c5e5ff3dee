// SPDX-License-Identifier: Apache-2.0
// Purpose: the ranks of an MPI_COMM_WORLD over several hosts that have Tombolo. Each puts a key
// into the launcher's store in front of the MPI's initialization (runtime/host_mpi/key_store.h).
// Behind it, and before the program can call the MPI, the first rank that has a key asks for those
// of all, and tells the others that have one.
//
// A process that has initialized a session first may never call MPI_Init: it is told nothing, has a
// key of another name, and asks for all keys by itself.
//
// Invariants: KH1 a message is sent to, and awaited from, only such processes as have put their key
//                 in MPI_Init.
//             KH2 all ranks with a key get the same list.
// Thread safety: as the MPI's initialization.
#pragma once

#include <optional>
#include <vector>

#include "runtime/host_mpi/world_name.h"

namespace tombolo::mpi {

// Called in front of the MPI's initialization, by a session or by MPI_Init. Whether the store has
// taken the key.
bool put_key(const runtime::WorldName& world, bool by_session);

// Each process that has put a key calls it behind MPI_Init. Nothing where the host MPI fails.
std::optional<std::vector<int>> key_holders(const runtime::WorldName& world, bool by_session);

}  // namespace tombolo::mpi
