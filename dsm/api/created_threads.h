// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: threads that a program creates and joins (003 tables 5.2 and
// 5.4), run by the processes that the launcher has started: all but the first wait for them.
//
//   first process:  create(function, argument, thread); join(thread, value); ... end()
//   the others:     serve()                    // returns at the end
//
// Functions go from process to process as places of code (runtime/findings/call_sites.h): the
// processes may have the program at different addresses.
//
// Invariants: CTH1 a process runs one thread at a time; values of keys, and mutexes, are a
//                  thread's: none is left when it has ended.
//             CTH2 end() waits until all threads have ended: each of the others then gets one task
//                  without a function.
// Thread safety: as ProgramMemory.
#pragma once

#include "dsm/threads/keys.h"
#include "dsm/threads/thread_table.h"

namespace tombolo::dsm {

class CreatedThreads {
 public:
  using Function = void* (*)(void*);

  static constexpr Lock locks = ThreadTableLayout::locks;
  static constexpr WordIndex words(Thread processes) { return ThreadTableLayout::words(processes); }

  CreatedThreads(ProgramMemory& memory, Keys& keys, WordIndex first_word, Lock first_lock)
      : memory_(memory),
        keys_(keys),
        table_(memory,
               {.first_word = first_word, .first_lock = first_lock, .servers = memory.threads()}) {}

  // Errors are the numbers of Pthreads: EAGAIN if all processes are busy.
  int create(Function function, void* argument, ThreadHandle& out);
  int join(ThreadHandle thread, void*& value);
  ThreadHandle self() const { return self_; }
  bool is_first() const { return self_ == ThreadTable::first_thread; }

  // `spans`: that this thread is in.
  void serve(const int& spans);
  void end();

 private:
  ProgramMemory& memory_;
  Keys& keys_;
  ThreadTable table_;
  ThreadHandle self_ = ThreadTable::first_thread;
};

}  // namespace tombolo::dsm
