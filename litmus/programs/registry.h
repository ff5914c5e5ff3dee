// SPDX-License-Identifier: Apache-2.0
// Purpose: all programs that are explored, as values: every algorithm of sync/ and of the machines'
// emulation, the engine of windows/, the protocols of dsm/, the scheduler of svp/, and their broken
// twins.
//
// A new one is a line in locks.cpp, others.cpp, windows.cpp, memory.cpp, families.cpp or
// broken.cpp; a lock family that sync/locks/families.h lists is there already.
// Thread safety: the list is constant.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "litmus/explorer/bounds.h"
#include "litmus/explorer/program.h"

namespace tombolo::litmus {

struct ExploredProgram {
  std::string name;
  std::string about;
  bool broken = false;  // the explorer must find a failure
  Bounds bounds = {};   // for `cores` cores; the search ends in seconds
  machine::Home cores = 2;
  std::function<std::unique_ptr<Program>(machine::Home cores)> make;
};

const std::vector<ExploredProgram>& explored_programs();

// The parts of the list.
std::vector<ExploredProgram> lock_programs();
std::vector<ExploredProgram> other_programs();
std::vector<ExploredProgram> window_programs();
std::vector<ExploredProgram> memory_programs();
std::vector<ExploredProgram> family_programs();
std::vector<ExploredProgram> broken_programs();
std::vector<ExploredProgram> broken_window_programs();
std::vector<ExploredProgram> broken_memory_programs();
std::vector<ExploredProgram> broken_family_programs();

// Not in the list: those over windows, where loads overtake drains and publishes (overtaken.h).
std::vector<ExploredProgram> overtaken_window_programs();

}  // namespace tombolo::litmus
