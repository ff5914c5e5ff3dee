// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"
#include "mpi/processes/spawning.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Comm_spawn(const char* command, char* argv[], int maxprocs, MPI_Info info,
                                    int root, MPI_Comm comm, MPI_Comm* intercomm,
                                    int array_of_errcodes[]) {
  return spawn({root, comm, {&info, 1}, {&maxprocs, 1}, intercomm}, [&](const MPI_Info* infos) {
    return TOMBOLO_HOST(Comm_spawn)(command, argv, maxprocs, *infos, root, comm, intercomm,
                                    array_of_errcodes);
  });
}
