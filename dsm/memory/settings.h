// SPDX-License-Identifier: Apache-2.0
// Purpose: the settings of a program on virtual shared memory: those that its user gives
// (read_options() reads them), which say how its processes share memory, and how much; and the
// needs of the layer above.
// Thread safety: plain values.
#pragma once

#include <cstdint>

#include "dsm/memory/dsm_options.h"
#include "dsm/protocol/shape.h"
#include "dsm/protocol/tuning.h"
#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

// Trivially copyable: all processes take those of process 0.
struct Settings : DsmOptions {
  Lock locks = 1024;
  WordIndex words = 4096;
  bool timed = false;   // waits are timed, and pages are counted one by one
  bool traced = false;  // events are kept for a trace
};

static_assert(options::dsm_without.choices.size() == tunings.size(), "DTU2");

}  // namespace tombolo::dsm
