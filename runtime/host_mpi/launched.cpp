// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_mpi/launched.h"

#include <span>

#include "base/options.h"

namespace tombolo::runtime {
namespace {

constexpr std::uint64_t most_processes = 1'000'000;

// MPICH's launcher and Slurm's for it, Open MPI's, Slurm's.
constexpr Option sizes[] = {{.variable = "PMI_SIZE"},
                            {.variable = "OMPI_COMM_WORLD_SIZE"},
                            {.variable = "SLURM_STEP_NUM_TASKS"}};
constexpr Option ranks[] = {
    {.variable = "PMI_RANK"}, {.variable = "OMPI_COMM_WORLD_RANK"}, {.variable = "SLURM_PROCID"}};

int first_of(std::span<const Option> options, int otherwise) {
  for (const Option& option : options) {
    const auto number = number_in(text_of(option));
    if (number && *number < most_processes) return static_cast<int>(*number);
  }
  return otherwise;
}

}  // namespace

int processes_of_mpi_job() { return first_of(sizes, 1); }
int rank_in_mpi_job() { return first_of(ranks, 0); }
int tasks_of_srun() { return first_of({&sizes[2], 1}, 1); }

}  // namespace tombolo::runtime
