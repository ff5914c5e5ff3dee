// SPDX-License-Identifier: Apache-2.0
// Purpose: the programs of the processes that have started this one: the launcher of an MPI is
// among them, and its library lies beside it.
// Thread safety: any thread.
#pragma once

#include <string>
#include <vector>

namespace tombolo::host {

// The paths of their programs, the parent's first. Those that may not be read are left out, and
// those outside of this process's namespace of processes.
std::vector<std::string> programs_of_ancestors();

}  // namespace tombolo::host
