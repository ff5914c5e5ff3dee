// SPDX-License-Identifier: Apache-2.0
// Purpose: the processes of a program that a launcher has started together: the first one, servers
// of threads, and memory servers, whose memory is the home of the program's.
// Thread safety: as ProgramProcess.
#pragma once

#include <memory>

#include "pthreads/program/program_facts.h"
#include "pthreads/program/program_process.h"

namespace tombolo::dsm {

// The role of this process of the job. The facts and the job last to the end of the process.
std::unique_ptr<ProgramProcess> make_launched_process(ProgramFacts& facts, OneSided& job);

}  // namespace tombolo::dsm
