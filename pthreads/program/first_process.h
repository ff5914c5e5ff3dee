// SPDX-License-Identifier: Apache-2.0
// Purpose: the first process of a program: it runs main() on a stack in the program's memory, forks
// the other processes when its thread creates the second one, and ends the program.
// Thread safety: as ThreadedProgram.
#pragma once

#include <string>

#include "pthreads/program/threaded_program.h"

namespace tombolo::dsm {

class FirstProcess : public ThreadedProgram {
 public:
  explicit FirstProcess(ProgramFacts& facts) : ThreadedProgram(facts) {
    running_ = ThreadTable::first_thread;
  }

  Status meet_others() override { return make_room_for_threads(nullptr); }
  Status enter() override { return open_memory(0, nullptr); }
  [[noreturn]] void run(const Main& main) override;

  bool can_become_another() const override { return true; }
  void end_others() override;
  [[noreturn]] void exit(int status) override;

 protected:
  int prepare_threads() override;
  void thread_ends() override;
  void end_here(int status) override;
  // All others end, in a handler of exit().
  virtual void end_program();

 private:
  Status start_team();
  std::string name_of_member(int rank) const;
  [[noreturn]] void be_member(int rank);
};

}  // namespace tombolo::dsm
