// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "mpi/intercept/intercept.h"
#include "mpi/processes/spawning.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Comm_spawn_multiple(int count, char* array_of_commands[],
                                             char** array_of_argv[], const int array_of_maxprocs[],
                                             const MPI_Info array_of_info[], int root,
                                             MPI_Comm comm, MPI_Comm* intercomm,
                                             int array_of_errcodes[]) {
  int rank = -1;
  if (comm != MPI_COMM_NULL) TOMBOLO_HOST(Comm_rank)(comm, &rank);
  // At the other processes these arguments may be anything.
  const std::size_t commands =
      rank == root && array_of_maxprocs != nullptr && array_of_info != nullptr
          ? static_cast<std::size_t>(std::max(count, 0))
          : 0;
  const Spawning spawning{
      root, comm, {array_of_info, commands}, {array_of_maxprocs, commands}, intercomm};
  return spawn(spawning, [&](const MPI_Info* infos) {
    return TOMBOLO_HOST(Comm_spawn_multiple)(
        count, array_of_commands, array_of_argv, array_of_maxprocs,
        commands == 0 ? array_of_info : infos, root, comm, intercomm, array_of_errcodes);
  });
}
