// SPDX-License-Identifier: Apache-2.0
// Purpose: the losses that a machine has seen, in the words of an MPI programmer. Needs no MPI.
// Thread safety: yes.
#pragma once

#include <string>
#include <vector>

#include "machine/losses.h"

namespace tombolo::mpi {

// The window of a report.
struct ReportedWindow {
  std::string name;           // as the program has set it; may be empty
  std::uint64_t made_at = 0;  // call_site()
  int size = 0;
};

// "lost update: 8 bytes that rank 1 wrote at a.c:12 were ..." without a full stop. The ranks are
// those of the window's communicator. `culprit` and `victim`: the places of the fact's sites.
std::string sentence(const machine::LossFact& fact, const std::string& culprit,
                     const std::string& victim);

// A heading, and a line for each fact. Looks for the places' lines (runtime::places_of).
std::string report(const ReportedWindow& window, const std::vector<machine::LossFact>& facts);

// The command of a shell that starts this program in the same way, as its own arguments and the
// settings of its environment say.
std::string command_again(int ranks, std::uint64_t seed, std::uint64_t evictions);

}  // namespace tombolo::mpi
