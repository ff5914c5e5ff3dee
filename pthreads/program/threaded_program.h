// SPDX-License-Identifier: Apache-2.0
// Purpose: an unchanged threaded program whose threads run in processes: variables,
// heap and stacks lie in memory that all of them have at the same addresses; descriptors and the
// working directory are shared; all else (variables of libraries, thread-local memory, handlers of
// signals) is each process's own, and was copied when the first thread was created.
//
//   before main:       ThreadedProgram::start()          then main runs on run_on_first_stack()
//   between hosts:     ThreadedProgram::start() in all processes; in the others serve() takes
//   main's place pthread_create():  ThreadedProgram::here()->create(...)
//   in the process:    waits for a task, runs it in a thread of the C library, which so has its
//                      own thread-local memory, waits for the next
//   in a memory server: waits for the end of the program; its memory is the home of the program's,
//                      and the others reach it by themselves
//
// Invariants: WLD1 the memory of the program is changed by loads and stores of the program, and by
//                  the runtime in spans; all else that processes share is words and locks.
//             WLD2 the descriptor of a thread in the C library has an address that no other thread
//                  of the program has: the owner of a lock in the C library is so named.
//             WLD3 no two threads of the program run in one process at once. Other threads are the
//                  runtime's, or the host MPI's: their calls are the C library's.
// Thread safety: one thread in each process.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dsm/allocator/heap.h"
#include "dsm/memory/program_memories.h"
#include "dsm/threads/objects/object_table.h"
#include "dsm/threads/thread_table.h"
#include "host/faults/caught_calls.h"
#include "pthreads/program/mappings.h"
#include "pthreads/program/server_team.h"
#include "pthreads/program/system_calls.h"

namespace tombolo::dsm {

class LaunchedTeam;
class OneSided;
class ProgramState;
struct ProgramLayout;

class ThreadedProgram {
 public:
  // The C library's own functions, in whose places those of pthreads/calls/ stand.
  struct HostThreads {
    int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = nullptr;
    int (*join)(pthread_t, void**) = nullptr;
    int (*create_key)(pthread_key_t*, void (*)(void*)) = nullptr;
    int (*set_specific)(pthread_key_t, const void*) = nullptr;
    void (*exit)(int) = nullptr;      // of the process
    void (*flush)() = nullptr;        // the streams of the program
    char* single_threaded = nullptr;  // the program's __libc_single_threaded; null: it has none
  };
  // In the thread, when its function has ended in any way.
  using AtEnd = void (*)();

  // By all processes of the job, which outlives the program. A process that is alone will fork the
  // others; those of a host MPI are all there. `advice`: what to do about an error, for its
  // message. Errors: no memory, settings that are not understood, a host that cannot.
  static runtime::Agreed start(Job& job, const HostThreads& host, AtEnd at_end,
                               std::unique_ptr<ProgramMemories> kind, std::string& advice);
  // The one that the calls of this thread serve. Null before start(), while the runtime itself
  // calls, and in threads that are not the program's: then all calls are the C library's.
  static ThreadedProgram* here() { return catching && host::calls_pass() ? nullptr : served; }

  // Whether a thread whose calls here() does not serve is none of the program: that of a library's
  // constructor would be.
  static bool is_of_the_runtime() { return begun; }
  // From now on; start() does it, too.
  static void runtime_starts_threads() { begun = true; }

  // Runs the function on the stack of the first thread.
  void run_on_first_stack(void (*function)(void*), void* object);

  bool owns(const void* address) const {
    const auto* const at = static_cast<const std::byte*>(address);
    return at >= memory_.data() && at < memory_.data() + memory_.size();
  }

  ProgramMemory& memory() { return *process_->memory; }
  Heap& heap() { return *process_->heap; }
  Mappings& mappings() { return *process_->mappings; }
  ThreadTable& threads() { return *process_->threads; }
  ObjectTable& objects() { return *process_->objects; }
  ThreadHandle self() const { return process_->running; }
  // Of this thread.
  std::span<std::byte> stack() const { return process_->stack; }
  // The records of this process.
  Observer observer() { return kind_->observer(); }
  // After the first create().
  bool has_processes() const { return team_ != nullptr; }
  // Whether a launcher has started the processes together.
  bool is_launched() const { return job_ != nullptr; }
  // Of such processes not the first: there is no main().
  bool is_server() const;
  // In such a process: runs threads until the program ends.
  [[noreturn]] void serve();
  // Whether this process, of several that were launched, is a memory server. A forked one knows
  // its rank instead, and has no use for this object.
  bool holds_memory() const;
  // In a launched memory server: waits until the program ends.
  [[noreturn]] void hold_memory();
  bool is_first() const { return process_->running == ThreadTable::first_thread; }
  // Whether the end of the program has begun in this process.
  bool ends() const { return ends_; }

  // As ThreadTable::create(). The first call forks the keeper of the processes and the memory
  // servers, if they are forked: EAGAIN if it cannot.
  int create(Task task, ThreadHandle& out);
  // Sends the signal to the thread. ESRCH if it does not exist.
  int signal(ThreadHandle thread, int number);
  // So that the thread looks whether it is cancelled, if it sleeps in a system call.
  void wake_up(ThreadHandle thread);
  // By the first thread: the program ends when it has, by the C library's pthread_exit(), and so
  // have all others.
  void first_thread_ends() { host_.set_specific(end_key_, this); }
  // The program ends with this status, as the first thread does it.
  [[noreturn]] void exit(int status);
  // In the first process, which is to become another program: the other threads end.
  void end_others();
  // Whether this is a child that vfork() has made: it runs in its parent's memory.
  bool is_in_a_child() const;
  // The number of the first thread's process, on its host, which the program takes for its own.
  pid_t process() const { return first_process_; }

  const ProgramLayout& layout() const { return *layout_; }

  // As long as it lives this process's calls are the runtime's own, not the program's.
  class Inside {
   public:
    Inside() : served_(served) { served = nullptr; }
    ~Inside() { served = served_; }
    // The program has ended.
    void for_ever() { served_ = nullptr; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    ThreadedProgram* served_;
  };

  // While the first thread is busy in the runtime, another's exit() waits.
  class Busy {
   public:
    explicit Busy(ThreadedProgram& program) : world_(program) { ++world_.busy_; }
    ~Busy() {
      --world_.busy_;
      world_.look_when_idle();
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    ThreadedProgram& world_;
  };

 private:
  // The parts of one process.
  struct Process {
    std::unique_ptr<ProgramMemory> memory;
    std::unique_ptr<Heap> heap;
    std::unique_ptr<Mappings> mappings;
    std::unique_ptr<ThreadTable> threads;
    std::unique_ptr<ObjectTable> objects;
    std::unique_ptr<SystemCalls> calls;  // null if the kernel reaches all of the memory
    ThreadHandle running = ThreadTable::first_thread;
    std::span<std::byte> stack = {};  // of the running thread
  };
  struct Run;

  static inline constinit thread_local ThreadedProgram* served = nullptr;
  static inline constinit thread_local bool catching = false;
  static inline constinit bool begun = false;

  ThreadedProgram();
  ~ThreadedProgram();
  runtime::Agreed begin(runtime::Collective<Job>& all);
  runtime::Agreed agree_with_others(runtime::Collective<Job>& all);
  MemoryPlan memory_plan() const;
  std::string advice(const Status& why) const;
  Status enter(Thread thread);
  std::vector<std::byte*> stack_ends() const;
  Status make_heap(ProgramMemory& memory, std::unique_ptr<Heap>& out) const;
  Status make_bases();
  Status start_team();
  Status start_launched_team();
  int start_server(Thread server);
  void tell_of_refusal();
  void tell_counts();
  bool process_of(ThreadHandle thread, Thread& server);
  [[noreturn]] void serve(Thread server);
  [[noreturn]] void be_member(int rank);
  std::string name_of_member(int rank) const;
  void adopt_program();
  void run(const Task& task, std::uint64_t& result);
  std::span<std::byte> stack_of(Thread server) const;
  std::span<std::byte> base_of(Thread server) const;
  static void* run_task(void* run);
  static void at_thread_end(void* program);
  static void exit_asked(int status);
  static void look_for_end();
  static void end_team();
  [[noreturn]] void end_here(int status);
  [[noreturn]] void wait_for_end();
  static void exit_at_once(int status);
  [[noreturn]] void end_at_once(int status);
  [[noreturn]] void leave();
  void keep_stack_open();
  void look_when_idle();
  void catch_calls();

  HostThreads host_;
  AtEnd at_end_ = nullptr;
  std::unique_ptr<ProgramMemories> kind_;
  std::unique_ptr<ProgramLayout> layout_;
  std::span<std::byte> memory_;
  std::span<std::byte> bases_;    // private memory of each process, for the C library's threads
  OneSided* job_ = nullptr;       // null: the processes are forked
  char** environment_ = nullptr;  // at the start, where no page of the memory is
  std::unique_ptr<ServerTeam> team_;
  LaunchedTeam* launched_ = nullptr;  // the team, if a launcher has started the processes
  std::unique_ptr<host::CallTarget> launched_calls_;
  std::unique_ptr<Process> process_;
  pthread_key_t end_key_ = 0;
  pid_t first_process_ = 0;
  pid_t own_process_ = 0;
  int busy_ = 0;
  bool ends_ = false;     // this process
  bool has_run_ = false;  // a thread, in a process that was launched as a server
  volatile sig_atomic_t end_waits_ = false;
};

}  // namespace tombolo::dsm
