// SPDX-License-Identifier: Apache-2.0
// Purpose: a server of threads: a process that waits for a task, runs it in a thread of the C
// library, which so has its own thread-local memory, and waits for the next. This one was forked
// from the first process.
// Thread safety: as ThreadedProgram.
#pragma once

#include "pthreads/program/threaded_program.h"

namespace tombolo::dsm {

class ThreadServer : public ThreadedProgram {
 public:
  ThreadServer(ProgramFacts& facts, Thread number) : ThreadedProgram(facts), number_(number) {}

  Status meet_others() override { return {}; }
  Status enter() override { return open_memory(number_, nullptr); }
  [[noreturn]] void run(const Main& main) override;

  [[noreturn]] void exit(int status) override;

 protected:
  [[noreturn]] void serve();

  // Before each thread.
  virtual void adopt_program() {}
  virtual Status serve_signals_of_thread(sigset_t mask);
  // The program ends in the first process.
  [[noreturn]] virtual void wait_for_end();
  void thread_ends() override;
  // Its keeper ends it.
  void end_here(int /*status*/) override {}

 private:
  struct Run;
  void run_thread(const Task& task, std::uint64_t& result);
  static void* run_task(void* run);

  Thread number_;
};

}  // namespace tombolo::dsm
