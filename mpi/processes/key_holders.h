// SPDX-License-Identifier: Apache-2.0
// Purpose: the ranks of an MPI_COMM_WORLD over several hosts that have Tombolo. Each puts a key
// into the launcher's store in front of the MPI's initialization (runtime/host_mpi/key_store.h).
// Behind it, and before the program can call the MPI, the first rank that has a key asks for those
// of all, and tells the others that have one.
//
// Invariants: KH1 no message is sent to a process without Tombolo.
//             KH2 all ranks with a key get the same list.
// Thread safety: as the MPI's initialization.
#pragma once

#include <optional>
#include <vector>

#include "runtime/host_mpi/world_name.h"

namespace tombolo::mpi {

// In front of the MPI's initialization. Whether the store has taken the key.
bool put_key(const runtime::WorldName& world);

// Behind it, by each process that has put a key. Nothing where the host MPI fails.
std::optional<std::vector<int>> key_holders(const runtime::WorldName& world);

}  // namespace tombolo::mpi
