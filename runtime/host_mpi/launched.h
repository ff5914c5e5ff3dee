// SPDX-License-Identifier: Apache-2.0
// Purpose: the job in which the launcher of an MPI, or Slurm's srun, has started this process, as
// the environment tells it before any MPI is initialized. Thread safety: as getenv.
#pragma once

namespace tombolo::runtime {

// Of the job that this process is in; 1 where no such launcher has started it.
int processes_of_mpi_job();
// The number of this process there; 0 likewise.
int rank_in_mpi_job();
// Of srun's job step; 1 where srun has not started this process.
int tasks_of_srun();

}  // namespace tombolo::runtime
