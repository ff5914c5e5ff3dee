// SPDX-License-Identifier: Apache-2.0
#include "svp/places/exclusive.h"

#include "base/check.h"
#include "machine/waiting.h"
#include "svp/scheduler/pool.h"

namespace tombolo::svp {

Exclusive::~Exclusive() {
  TOMBOLO_CHECK(last_.load() == 0, "an exclusive place ends before its families are synced");
}

bool Exclusive::enter(QueuedTurn& turn, const Scope* creator) {
  if (Queue::enter(core_, &last_, number_of(turn), link_of, claim_of) == 0) return true;
  // A family that runs is in the queue: its descendants never find that empty.
  refuse_within_itself(creator);
  return false;
}

void Exclusive::refuse_within_itself(const Scope* creator) const {
  // relaxed: if it is a scope above the creator, then this thread is within that family, and the
  // store came before its threads.
  const Scope* const serving = serving_.load(std::memory_order_relaxed);
  TOMBOLO_CHECK(
      serving == nullptr || creator == nullptr || !creator->within(*serving),
      "create at an exclusive place, from within a family of that place: neither could end");
}

// The other thread may have lost its processor between its two steps.
void Exclusive::await(Worker::Core::Word link) {
  static constexpr machine::WaitPolicy soon{.polls = 200};
  machine::Waiter waiter(soon, nullptr);
  while (link->load(std::memory_order_acquire) == 0) (void)waiter.step().ok();  // has no hook
}

void Exclusive::run(const Turn& turn, Worker& worker) {
  begin_own(turn.task->scope);
  const bool measured = until_measured_ == 0;
  until_measured_ = measured ? rarely : until_measured_ - 1;
  const Clock::time_point start = measured ? Clock::now() : Clock::time_point();
  turn.task->run(*turn.task, worker);
  // relaxed: a hint.
  if (measured) are_short_.store(Clock::now() - start < short_family, std::memory_order_relaxed);
  serving_.store(nullptr, std::memory_order_relaxed);  // see refuse_within_itself()
}

void Exclusive::pass_on(const Turn& next, Worker& worker) {
  // relaxed: a hint.
  if (are_short_.load(std::memory_order_relaxed) && worker.run_beside(*next.task)) return;
  worker.pool().delegate(*next.task);
}

void Exclusive::serve(Turn& first, Worker& worker) {
  const bool has_own_stack = worker.begins_from_loop(*first.task);
  Turn* turn = &first;
  for (unsigned served = 1; turn != nullptr; ++served) {
    run(*turn, worker);
    Task& task = *turn->task;
    Turn* const next = leave(*turn);
    worker.finish(task);  // TRN2: both may be gone now
    if (next == nullptr) return;
    const bool goes_on =
        has_own_stack && served != in_a_row &&
        (are_short_.load(std::memory_order_relaxed) || !worker.has_ready());  // relaxed: a hint
    if (!goes_on) return worker.pool().delegate(*next->task);
    turn = next;
  }
}

}  // namespace tombolo::svp
