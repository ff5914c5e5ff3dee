// SPDX-License-Identifier: Apache-2.0
// Purpose: a name for the MPI_COMM_WORLD of this process, which all of its processes on this host
// form alike before they initialize the MPI, from the environment that the launcher gives them.
//
//   WorldName world = world_name();  // the initialization unsets variables: in front of it
//
// Launchers that serve PMIx are known (those of Open MPI, srun), and those of MPICH, Hydra and
// gforker, which are asked.
// Thread safety: as getenv. Nothing else may use the socket of PMI meanwhile.
#pragma once

#include <string>

#include "runtime/host_mpi/key_store.h"

namespace tombolo::runtime {

struct WorldName {
  std::string name;      // empty: not known
  int rank = 0;          // of this process there
  int here = 1;          // so many of its processes are on this host
  int size = 0;          // so many processes it has; 0: not told by the environment
  std::string launcher;  // MPICH's, the same for worlds that its processes spawn; else empty
  int spawned = 0;       // MPICH's launcher started so many processes for an MPI_Comm_spawn
  KeyStore keys;         // without a name: there is none that can be asked
};

WorldName world_name();

}  // namespace tombolo::runtime
