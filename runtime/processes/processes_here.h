// SPDX-License-Identifier: Apache-2.0
// Purpose: how many processes of a job share this host. Thread safety: as getenv.
#pragma once

#include <cstdint>

namespace tombolo::runtime {

// As the launcher says (MPICH's, Open MPI's, Slurm's); 1 if it says nothing.
std::uint32_t processes_here();

}  // namespace tombolo::runtime
