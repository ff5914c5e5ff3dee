// SPDX-License-Identifier: Apache-2.0
// Purpose: the role of a process of an unchanged threaded program, from its start on. It is the
// first one, which runs main(), a server of threads, or a memory server, whose memory is the home
// of the program's. Processes are forked (first_process.h, thread_server.h), or a launcher has
// started them together (launched_processes.h).
//
//   TOMBOLO_AGREE(all.step({}, [&] { return process->meet_others(); }));
//   TOMBOLO_AGREE(all.step({}, [&] { return process->enter(); }));
//   process->run(main);
//
// Thread safety: one thread.
#pragma once

#include "base/status.h"

namespace tombolo::dsm {

class ProgramProcess {
 public:
  virtual ~ProgramProcess() = default;
  // From here on it hears of the others, where these are there. The facts are agreed.
  virtual Status meet_others() = 0;
  // It has its part of the memory.
  virtual Status enter() = 0;
  // To the end of the process.
  struct Main {
    void (*begun)();     // is called where the program has a thread, whose calls are served by now
    void (*run)(void*);  // is called in the first process, on the first thread's stack
    void* object;
  };
  [[noreturn]] virtual void run(const Main& main) = 0;
};

}  // namespace tombolo::dsm
