// SPDX-License-Identifier: Apache-2.0
// Purpose: a worker: a thread that runs tasks of its own deque, and of others' when it has none.
//
//   worker.offer(task);                       // create
//   if (worker.take_back(task)) ... run it here ... else worker.wait(task);     // sync
//
// A worker that waits for a task which another worker has taken helps that worker: it runs tasks
// that this one created (leapfrogging, Wagner and Calder, PPoPP 1993), on its stack if they descend
// from the awaited one. If there are none, or the wait is for something else, it parks its stack
// and goes on with a fresh one.
//
// A worker that is asked for entries and has none divides a range of threads that it runs
// (open_range.h): the one that began first.
//
// Invariants: WK1 a stack stays with its worker.
//             WK2 a stack on which a thread waits runs descendants of the awaited task alone. So
//                 a thread that blocks holds up only threads that wait for it in any case.
//             WK3 while no thread is blocked in a channel, a worker parks at most `most_parked`
//                 stacks for tasks that others have taken: memory is bounded by depth times
//                 workers.
//             WK4 a worker that sleeps has asked all others for entries, but for a nap of bounded
//                 length (idle_policy.h); those that share one, deliver, finish or raise an alarm
//                 wake it. One that finishes does so only where the worker sleeps
//                 (sleep_handshake.h): most poll.
// Thread safety: here() and the functions below "Any thread" by any thread; the rest by the
// worker's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/engines/thread_core.h"
#include "svp/records/family_trace.h"
#include "svp/records/own_count.h"
#include "svp/scheduler/alarm.h"
#include "svp/scheduler/blocked.h"
#include "svp/scheduler/handover.h"
#include "svp/scheduler/idle_policy.h"
#include "svp/scheduler/inbox.h"
#include "svp/scheduler/open_range.h"
#include "svp/scheduler/sleep_handshake.h"
#include "svp/scheduler/split_deque.h"
#include "svp/scheduler/strand.h"
#include "svp/scheduler/task.h"

namespace tombolo::svp {

class Pool;
class RemotePoller;

class Worker {
 public:
  using Core = runtime::ThreadCore;
  using Deque = SplitDeque<Core>;
  using Hand = Handover<Core>;
  using Rest = SleepHandshake<Core>;
  using Mail = Inbox<Core>;

  struct Layout {
    Deque::Layout deque;
    Alarm<Core>::Layout alarm;
    machine::Offset signal = 0;
  };
  static Layout take(machine::SyncLayout& layout, Deque::Slot capacity) {
    const Deque::Layout deque = Deque::take(layout, 0, capacity);
    return {.deque = deque,
            .alarm = Alarm<Core>::take(layout, deque.wanted),
            .signal = layout.take_lines(1)};
  }

  Worker(Pool& pool, const Core::Attachment& at, const Layout& layout);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The calling thread's; null if it is no worker.
  static Worker* here() { return here_; }
  Pool& pool() const { return pool_; }
  machine::Home number() const { return core_.self(); }
  // The family whose thread runs now; null: none does.
  Scope* scope() const { return scope_; }
  void set_scope(Scope* scope) { scope_ = scope; }

  // ---- Tasks of the running thread --------------------------------------------------------------

  // One whose creator is this worker.
  void offer(Task& task) {
    if (deque_.full()) [[unlikely]]
      return keep(task);
    task.slot = deque_.push(reinterpret_cast<Deque::Entry>(&task));
  }
  // True: the caller has the task and runs it.
  bool take_back(Task& task) {
    if (deque_.claim_last(task.slot)) [[likely]]
      return true;
    return take_back_slowly(task);
  }
  // Until the task is done: one that this worker offered and could not take back, or that was
  // delegated. False, if `unless_stopped`, for one that is queued: its family was stopped before.
  bool wait(Task& task, bool unless_stopped = false);
  // At the end of `run` of a task that was not taken back. The task may be gone afterwards.
  void finish(Task& task);

  // True if attend() is due: another worker wants entries, or an alarm was raised.
  // relaxed: a hint; attend() looks in order, and loops keep their variables in registers.
  bool wanted() const { return wanted_->load(std::memory_order_relaxed) != 0; }
  // Shares entries, hears alarms. True: the running thread's family, or one above, was stopped.
  bool attend();
  // Where wanted(): whether attend() would do something that cannot wait. An idle worker asks all
  // the time, also where this one has nothing that it may give away.
  bool has_answer();
  // The running thread's part of a range, as long as it runs threads of it.
  void open(OpenRange& range) {
    range.outer = ranges_;
    ranges_ = &range;
  }
  void close(const OpenRange& range) { ranges_ = range.outer; }

  // Where the task begins. True, once: loop() itself has begun it, and no thread waits below it on
  // the stack.
  bool begins_from_loop(const Task& task) { return std::exchange(from_loop_, nullptr) == &task; }
  // Runs the task on another stack, and goes on here when it has ended or blocks. False: it cannot,
  // as there is no memory for a stack.
  bool run_beside(Task& task);
  // True if a parked stack may go on.
  bool has_ready();

  // Parks the running thread until blocked.delivered, or until its family is stopped: false.
  // Where it is false, the caller withdraws `blocked` or, if it was about to be delivered, calls
  // await_delivery(). prepare_to_block() before the event could be delivered: throws
  // std::bad_alloc.
  void prepare_to_block();
  bool block(Blocked& blocked);
  void await_delivery(Blocked& blocked);

  // The running stack's; null where no such interface has set it.
  void*& program_thread() { return running_->program_thread; }

  PlaceName place() const;
  WorkerCounts& counts() { return counts_; }
  // The threads of a family, or a part of them, begin and end on this worker; where a trace is
  // kept, wanted() is always true.
  void note_begin(FamilyTrace::Event event, const Task& task, const FamilyTrace::Facts& facts) {
    if (trace_ != nullptr) trace_->begin(stack(), event, &task, facts);
  }
  void note_end(const Task& task) {
    if (trace_ != nullptr) trace_->end(stack(), &task, task.scope.reason());
  }
  void note(FamilyTrace::Event event, const FamilyTrace::Facts& facts) {
    if (trace_ != nullptr) trace_->mark(stack(), event, facts);
  }

  // For an access that faults, in its handler: the rest of a line about it (host/faults).
  static const char* explain_fault(const void* address);

  // ---- Any thread -------------------------------------------------------------------------------

  void wake();
  void deliver(Blocked& blocked);
  bool asleep() const { return asleep_.load(std::memory_order_relaxed) != 0; }  // a hint
  // Wakes it if it sleeps.
  bool rouse();
  Alarm<Core>& alarm() { return alarm_; }
  // Stacks that it has taken besides its thread's own.
  std::size_t stacks() const { return stacks_.load(std::memory_order_relaxed); }  // a hint

  // ---- The worker's thread ----------------------------------------------------------------------

  // Returns when the pool stops.
  void work();
  // On any stack: looks for work for ever.
  void loop();
  // The number of the running stack among the worker's; 0: its thread's own.
  unsigned stack() const { return running_->number; }

 private:
  static constexpr unsigned leap_tries = 400;
  static constexpr unsigned short_tries = 200;
  // Pauses between two looks at a task at another place, or queued at an exclusive one. There it is
  // dear to find the task's end soon: the thread creates its next family, and the place's lines go
  // to and fro between two workers, of which each alone would run some hundred short families
  // meanwhile. Messages of other processes are looked for all the while.
  static constexpr unsigned pauses_of_far = 32;
  static constexpr unsigned pauses_of_queued = 512;
  static constexpr unsigned far_tries = 8;
  // Of open ranges: an outer one is larger, but deep programs have many.
  static constexpr unsigned most_ranges_looked_at = 64;
  static constexpr std::size_t most_parked = 64;
  // Of a task in `kept_`.
  static constexpr Deque::Slot kept_slot = Deque::no_slot - 1;
  static thread_local constinit Worker* here_;

  void find_thread_guard();
  void keep(Task& task);
  bool take_back_slowly(Task& task);
  void drop_kept(const Task& task);
  void run_taken(Task& task);
  void run_from_loop(Task& task);
  bool leap(const Task& task, unsigned& tries);
  static bool look_away(const Task& task, RemotePoller* poller, unsigned& tries);
  bool may_park() const;
  bool divide_range();
  Task* steal_from(machine::Home victim);
  Task* steal_from_any();
  Task* own_task();
  Task* delegated_task();
  void begin_delegated(Task& task);
  Task* find_task();

  void add_spare_strand();
  void free_spare_stacks();
  bool may_suspend();
  void go_on_here(const Task& awaited);
  void park_until(const Task& task, bool unless_stopped);
  void suspend();
  void switch_to(Strand& next);
  Strand* next_ready();
  void receive();
  void look_at_awaited();
  void end_awaiting(std::size_t i);
  void poke_stopped();
  void leave_to(Strand& next);

  void no_longer_idle();
  void idle();
  static void give_way();
  IdlePolicy::For awaited() const;
  void fall_asleep(RemotePoller* poller);
  void sleep(std::uint64_t seen, bool naps, RemotePoller* poller);
  bool has_something_to_do(bool naps);

  Core core_;
  Deque deque_;
  Alarm<Core> alarm_;
  Core::Word wanted_;
  Core::Word signal_;
  Scope* scope_ = nullptr;
  OpenRange* ranges_ = nullptr;  // of the running stack, the innermost one
  WorkerCounts counts_;
  Pool& pool_;
  Strand* running_ = nullptr;
  std::optional<Strand> main_;
  std::uintptr_t thread_guard_ = 0;  // the end of the pages below the thread's own stack
  std::size_t thread_guard_bytes_ = 0;
  bool is_idle_ = false;
  bool has_slept_ = false;  // since it gave way
  IdlePolicy idle_policy_;
  const Task* from_loop_ = nullptr;  // until it asks, or ends: another one may get its memory
  Task* handed_on_ = nullptr;        // taken, for loop() on another stack
  std::uint64_t next_victim_;
  Task* kept_ = nullptr;  // tasks that the deque had no slot for
  std::vector<std::unique_ptr<Strand>> strands_;
  std::vector<unsigned> free_numbers_;  // of stacks that were freed
  std::vector<Strand*> spare_;          // parked in loop(), with nothing to do
  std::vector<Strand*> awaiting_;       // parked in wait()
  std::vector<Blocked*> blocked_;       // parked in block()
  std::deque<Strand*> ready_;
  std::atomic<std::size_t> stacks_{0};
  std::unique_ptr<FamilyTrace> trace_;  // null: none is kept
  // Other workers look at these; the worker itself rarely changes them.
  alignas(64) std::atomic<std::uint64_t> inbox_{0};  // a word of Mail
  std::atomic<std::uint64_t> asleep_{0};             // a word of Rest
};

}  // namespace tombolo::svp
