// SPDX-License-Identifier: Apache-2.0
// Purpose: the buffers of stdout and stderr, which are each process's own.
// Thread safety: one thread at a time.
#pragma once

#include <cstdio>

#include "pthreads/program/program_facts.h"

namespace tombolo::dsm {

// A buffer that was used before the process was there, or is to be used after the program's memory
// has gone, is the program's, and would be written by all. Nothing is in it: it was flushed.
void give_own_buffers(const ProgramFacts& facts);

// Lines of several processes come to the launcher by a pipe of each, and whole.
void write_by_line(std::FILE* stream);

}  // namespace tombolo::dsm
