// SPDX-License-Identifier: Apache-2.0
#include "runtime/processes/processes_here.h"

#include "base/options.h"

namespace tombolo::runtime {

std::uint32_t processes_here() {
  constexpr std::uint64_t more_than_any_host = 1'000'000;
  constexpr Option launchers[] = {{.variable = "MPI_LOCALNRANKS"},
                                  {.variable = "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                  {.variable = "SLURM_NTASKS_PER_NODE"}};
  for (const Option& launcher : launchers) {
    const std::uint64_t count = number_in(text_of(launcher)).value_or(0);
    if (count > 0 && count < more_than_any_host) return static_cast<std::uint32_t>(count);
  }
  return 1;
}

}  // namespace tombolo::runtime
