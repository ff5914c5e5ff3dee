// SPDX-License-Identifier: Apache-2.0
// Purpose: the processes of a program's threads, its *servers*, and its memory servers, and how one
// of them reaches the others: however these came to be (forked_servers.h, launched_servers.h). The
// first process is server 0.
//
// Invariants: SVT1 a process that ends before the program does ends the program, after one message.
// Thread safety: the thread that runs the program in each process.
#pragma once

#include "base/status.h"
#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

class ServerTeam {
 public:
  virtual ~ServerTeam() = default;

  // The process of a server is there when it returns. Errors: io if the host has none left.
  virtual Status add(Thread server) = 0;

  // Sends a signal to the process of a server. 0, or an error's number.
  virtual int signal(Thread server, int number) = 0;
  // So that its thread looks whether it is cancelled, if it sleeps in a system call.
  virtual void wake_up(Thread server) = 0;

  // In another process than the first: the program is to end with that status. Returns; the caller
  // waits for its end.
  virtual void ask_exit(int status) = 0;
  // The status that this process was asked to end with; -1 if it was not.
  virtual int asked_status() const = 0;
  // Whether it is to do so as by _exit().
  virtual bool asked_at_once() const { return false; }

  // In the first process, as the last of all: the others have ended, or need it no more.
  virtual void end() = 0;
  // In another process that was asked to end, before it exits.
  virtual void leave() = 0;
};

}  // namespace tombolo::dsm
