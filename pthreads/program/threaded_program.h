// SPDX-License-Identifier: Apache-2.0
// Purpose: an unchanged threaded program, as a process that runs one of its threads has it:
// variables, heap and stacks lie in memory that all processes have at the same addresses;
// descriptors and the working directory are shared; all else (variables of libraries, thread-local
// memory, handlers of signals) is each process's own, and was copied when the first thread was
// created. The class that derives from this one is the role of the process (program_process.h).
//
//   pthread_create():  ThreadedProgram::here()->create(...)
//
// Invariants: WLD1 the memory of the program is changed by loads and stores of the program, and by
//                  the runtime in spans; all else that processes share is words and locks.
//             WLD2 the descriptor of a thread in the C library has an address that no other thread
//                  of the program has: the owner of a lock in the C library is so named.
//             WLD3 no two threads of the program run in one process at once. Other threads are the
//                  runtime's, or the host MPI's: their calls are the C library's.
// Thread safety: one thread in each process.
#pragma once

#include <signal.h>

#include <memory>
#include <span>
#include <string>

#include "dsm/allocator/heap.h"
#include "dsm/threads/objects/object_table.h"
#include "dsm/threads/thread_table.h"
#include "host/faults/caught_calls.h"
#include "pthreads/program/mappings.h"
#include "pthreads/program/program_facts.h"
#include "pthreads/program/program_process.h"
#include "pthreads/program/system_calls.h"

namespace tombolo::dsm {

class ThreadedProgram : public ProgramProcess {
 public:
  // The one that the calls of this thread serve. Null before it runs, while the runtime itself
  // calls, and in threads that are not the program's: then all calls are the C library's.
  static ThreadedProgram* here() { return catching && host::calls_pass() ? nullptr : served; }

  // Whether a thread whose calls here() does not serve is none of the program: that of a library's
  // constructor would be.
  static bool is_of_the_runtime() { return begun; }
  // From now on.
  static void runtime_starts_threads() { begun = true; }

  bool owns(const void* address) const { return facts_.owns(address); }
  ProgramMemory& memory() { return *memory_; }
  Heap& heap() { return *heap_; }
  Mappings& mappings() { return *mappings_; }
  ThreadTable& threads() { return *threads_; }
  ObjectTable& objects() { return *objects_; }
  const ProgramLayout& layout() const { return facts_.layout; }
  // The number of the first thread's process, on its host, which the program takes for its own.
  pid_t process() const { return facts_.first_process; }
  // The records of this process.
  Observer observer() { return facts_.kind->observer(); }
  // After the first create().
  bool has_processes() const { return facts_.team != nullptr; }

  ThreadHandle self() const { return running_; }
  bool is_first() const { return running_ == ThreadTable::first_thread; }
  // It is the stack of the thread that runs here.
  std::span<std::byte> stack() const { return stack_; }
  // Whether the end of the program has begun in this process.
  bool ends() const { return ends_; }
  // Whether this is a child that vfork() has made: it runs in its parent's memory.
  bool is_in_a_child() const;
  // Whether programs that it starts have the program's descriptors.
  virtual bool starts_programs() const { return true; }
  // Whether this process may become another program; end_others() ends the other threads for it.
  virtual bool can_become_another() const { return false; }
  virtual void end_others() {}

  // As ThreadTable::create(). EAGAIN if there is no process for the thread.
  int create(Task task, ThreadHandle& out);
  // Sends the signal to the thread. ESRCH if it does not exist.
  int signal(ThreadHandle thread, int number);
  // So that the thread looks whether it is cancelled, if it sleeps in a system call.
  void wake_up(ThreadHandle thread);
  // By the first thread: the program ends when it has, by the C library's pthread_exit(), and so
  // have all others.
  void first_thread_ends() { notice_thread_end(); }
  // The program ends with this status, as the first thread does it.
  [[noreturn]] virtual void exit(int status) = 0;

  // As long as it lives this process's calls are the runtime's own, not the program's.
  class Inside {
   public:
    Inside() : served_(served) { served = nullptr; }
    ~Inside() { served = served_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    ThreadedProgram* served_;
  };

  // While the first thread is busy in the runtime, another's exit() waits.
  class Busy {
   public:
    explicit Busy(ThreadedProgram& program) : program_(program) { ++program_.busy_; }
    ~Busy() {
      --program_.busy_;
      program_.look_when_idle();
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    ThreadedProgram& program_;
  };

 protected:
  explicit ThreadedProgram(ProgramFacts& facts) : facts_(facts) {}

  // `calls`: is asked before system calls are made; null: none.
  Status open_memory(Thread thread, host::CallTarget* calls);
  // From now on the runtime looks for the end of this one.
  virtual void take_over();
  // It concerns the calling thread, where the memory needs it.
  void catch_calls();
  // It does as much as the C library's threads need; at_thread_end() follows.
  Status make_room_for_threads(std::byte* bases);
  void notice_thread_end() { facts_.host.set_specific(facts_.end_key, this); }

  // Before a thread is created here. 0, or an error's number.
  virtual int prepare_threads() { return 0; }
  // The thread is at its end, behind its cleanup handlers.
  virtual void thread_ends() = 0;
  // Another process has asked for the end of the program.
  virtual void end_here(int status) = 0;

  static void look_for_end();
  static void exit_asked(int status);
  static void tell(const std::string& sentence);

  static inline constinit thread_local ThreadedProgram* served = nullptr;
  static inline constinit thread_local bool catching = false;

  ProgramFacts& facts_;
  ThreadHandle running_ = 0;
  std::span<std::byte> stack_{};  // of the running thread
  bool ends_ = false;             // this process

 private:
  Status make_heap();
  int start_server(Thread server);
  void tell_of_refusal();
  bool process_of(ThreadHandle thread, Thread& server);
  void look_when_idle();
  static void at_thread_end(void* program);

  static inline constinit bool begun = false;
  // Never destroyed: the program's stack lies in its memory.
  static inline constinit ThreadedProgram* running_here = nullptr;

  std::unique_ptr<ProgramMemory> memory_;
  std::unique_ptr<Heap> heap_;
  std::unique_ptr<Mappings> mappings_;
  std::unique_ptr<ThreadTable> threads_;
  std::unique_ptr<ObjectTable> objects_;
  std::unique_ptr<SystemCalls> calls_;  // null if the kernel reaches all of the memory
  pid_t own_process_ = 0;
  int busy_ = 0;
  volatile sig_atomic_t end_waits_ = false;
};

}  // namespace tombolo::dsm
