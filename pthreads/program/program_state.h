// SPDX-License-Identifier: Apache-2.0
// Purpose: state that a process keeps by itself, in the kernel or in libraries, and that the first
// process of a program has set before it creates a thread: a fork would copy it; between hosts it
// is carried in the program's memory.
//
//   auto* const state = new (block) ProgramState();    // in the first process, at the first create
//   state->adopt();                                     // in another one, before its first thread
//
// Carried: the environment, the locale, the handlers of signals, and which parts of the program
// have store instrumentation. All else of libraries is not.
// Limits: a plain value of the program's memory.
// Thread safety: one thread at a time.
#pragma once

#include <signal.h>

#include <array>

#include "dsm/threads/instrumented_code.h"

namespace tombolo::dsm {

class ProgramState {
 public:
  // Of this process.
  ProgramState();
  void adopt() const;

 private:
  static constexpr int signals = 65;

  char** environment_;
  std::array<char, 1024> locale_{};  // of setlocale()
  std::array<struct sigaction, signals> actions_{};
  AttachedModules modules_;
};

}  // namespace tombolo::dsm
