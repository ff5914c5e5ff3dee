// SPDX-License-Identifier: Apache-2.0
// Purpose: the parts of a family that depend on neither its body nor its channels: its place in the
// tree of families, its end, kill and break.
//
// Invariants: VFA1 the first of kill, break and failure decides the exit; threads that have not
//                 begun then do not begin.
//             VFA2 a family is synced once, by the thread that created it. One that is left by an
//                 exception instead is killed and joined.
//             VFA3 an alarm that was raised for the family is retired at its sync; its stopper's
//                 last access to the family is the store to `announced_`.
// Thread safety: kill() by any thread while the family has not been synced; the rest by its
// creator, or by its threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>

#include "svp/exit.h"
#include "svp/family/external_threads.h"
#include "svp/scheduler/pool.h"
#include "svp/scheduler/scope.h"
#include "svp/scheduler/task.h"
#include "svp/scheduler/worker.h"

namespace tombolo::svp {

class FamilyBase : public Task, public Scope {
 public:
  // Its threads and all descendants end: at their next create, sync, read of a channel that blocks
  // or checkpoint(). Threads that have not begun do not begin.
  void kill();
  // By a thread of the family: ends the family with this value, and the thread.
  [[noreturn]] void break_with(std::int64_t value);
  // By the run-time: a thread has ended with an exception.
  void fail(std::exception_ptr error, bool alone);
  // By the run-time: whether further threads may begin on this worker, whose scope this is.
  bool may_go_on(Worker& worker) {
    if (worker.wanted() && worker.attend()) end_early();
    return reason() == 0;
  }
  // By the run-time: a thread ends, or does not begin, as a family above was stopped. The alarm may
  // be on its way to other workers yet; the sync finds this mark.
  void end_early();

 protected:
  // `worker`: the creating thread's; null: it is none.
  explicit FamilyBase(Run body, Worker* worker = nullptr)
      : Task(body, *this, worker), Scope(worker == nullptr ? nullptr : worker->scope()) {}
  ~FamilyBase() {
    if (reason() == static_cast<std::uint32_t>(ExitReason::failed)) [[unlikely]]
      std::destroy_at(&error_);
  }

  // Offers the family to the default place; for a thread that is no worker.
  void delegate_to_default();
  // Such a thread has created the family; until join().
  static void count_outside() { Pool::outside_families().fetch_add(1); }
  // Waits for the end where the caller could not take the family back.
  void join(Worker* worker);
  // The same, where it may be queued at an exclusive place: without its turn once it is stopped.
  template <class At>
  void join_at(At& at, Worker* worker) {
    if (queued == 0) return join(worker);
    bool ran = await_end(worker, true);
    if (!ran && !at.give_up()) ran = await_end(worker, false);
    if (ran)
      at.drop_turn();
    else
      end_early();
    count_joined(worker);
  }
  // The thread that syncs or leaves; checks that it is the creator.
  Worker* syncing() {
    TOMBOLO_CHECK(synced_ == 0, "sync: this family was synced before");
    TOMBOLO_CHECK(creator == nullptr || creator == Worker::here(),
                  "sync: by a thread that has not created the family");
    synced_ = 1;
    return creator;
  }
  Exit exit() {
    if (reason() == 0) [[likely]]
      return {};
    return exit_early();
  }
  // The end of a sync of a family that is not done. Throws Stopped.
  Exit sync_early(Worker* worker);
  // The end of a sync on a worker of which something is wanted. Throws Stopped.
  void sync_attentively(Worker& worker);
  bool synced() const { return synced_ != 0; }
  // In the destructor of a family that was not synced.
  void leave_unsynced();

 private:
  enum Announced : std::uint16_t { not_yet, raised, silent };

  void announce();
  Exit exit_early();
  // As Worker::wait().
  bool await_end(Worker* worker, bool unless_stopped);
  static void count_joined(Worker* worker);

  // These two fill the word that the reason is in: a create stores to as few as may be.
  std::atomic<Announced> announced_{not_yet};
  std::uint16_t synced_ = 0;
  union {
    std::int64_t value_;        // of a broken family
    std::exception_ptr error_;  // of one that has failed
  };
};

// Leaves the running thread if its family was stopped, or one above it; for loops without any
// create or sync.
inline void checkpoint() {
  Worker* const worker = Worker::here();
  if (worker == nullptr) {
    ExternalThreads* const threads = ExternalThreads::here();
    if (threads != nullptr && threads->stopped()) throw Stopped{};
  } else if (worker->wanted() && worker->attend()) [[unlikely]] {
    throw Stopped{};
  }
}
// The family of the running thread; null outside of all families.
inline FamilyBase* this_family() {
  Worker* const worker = Worker::here();
  return worker == nullptr ? nullptr : static_cast<FamilyBase*>(worker->scope());
}

}  // namespace tombolo::svp
