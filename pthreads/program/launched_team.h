// SPDX-License-Identifier: Apache-2.0
// Purpose: the processes that a launcher has started together with the first one, on any hosts, as
// the program's start sees them. A library of its own makes them (pthreads/hosts/), which is loaded
// where a launcher has started the program, and which this folder does not include.
//
//   TOMBOLO_TRY(make_launched_team(job, team));
//   Status started = team->start();            // in all processes, when the memory is there
//   team->tell_end_to(&exit_asked);
//   calls = team->calls({.program = number, .first = true, .ends = &ends, .looks = &looks});
//
// Thread safety: as ServerTeam.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/status.h"
#include "host/faults/caught_calls.h"
#include "pthreads/program/server_team.h"

namespace tombolo::dsm {

class OneSided;

class LaunchedTeam : public ServerTeam {
 public:
  struct Facts {
    pid_t program = 0;                   // the number of the first process, on its host
    bool first = false;                  // this one is it
    void (*ends)(int status) = nullptr;  // is called before this process ends at once (_exit), and
                                         // returns in the first process alone
    void (*looks)() = nullptr;           // is called in a wait, and may end the process
  };

  // Errors: no_memory, io.
  virtual Status start() = 0;
  // From now on `exit_asked` is called by a signal's handler of the program's thread, with the
  // status; in a server, when it is to leave. A process that starts late may have been asked
  // before: then asked_status() says so.
  virtual void tell_end_to(void (*exit_asked)(int status)) = 0;
  // System calls about things of the program, not of this process. The team outlives the result.
  virtual std::unique_ptr<host::CallTarget> calls(const Facts& facts) = 0;
};

// This process has no other team, and keeps this one to its end. Errors: unsupported (the library
// is not beside this one).
Status make_launched_team(OneSided& job, std::unique_ptr<LaunchedTeam>& out);

}  // namespace tombolo::dsm
