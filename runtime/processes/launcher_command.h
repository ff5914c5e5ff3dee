// SPDX-License-Identifier: Apache-2.0
// Purpose: the command that starts the processes of a program, `tombolo-X N PROGRAM [ARGUMENT]...`:
// its options, the signals that end it, and its exit status.
//
// The exit status is that of the process that decides it (LA2 of launcher.h), as a shell tells it;
// 2 if none was started. A process that was killed is named on stderr; one that ends with a status
// of its own has told the cause itself.
// Thread safety: called by main() alone.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace tombolo::runtime {

struct LauncherCommand {
  const char* name = nullptr;
  // Only process 0 runs the program.
  bool first_is_program = false;
  // How many processes there are for a program of N: N, or more. Null: N.
  std::function<Status(int asked, int& size)> size = nullptr;
  // In front of the message about a process that has failed, with its number. Null: nothing.
  std::function<std::string(int asked, int rank)> naming = nullptr;
};

int run_launcher_command(const LauncherCommand& command, int argc, char** argv);

}  // namespace tombolo::runtime
