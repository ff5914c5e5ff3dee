// SPDX-License-Identifier: Apache-2.0
#include "svp/places/exclusive.h"

#include "base/check.h"
#include "machine/waiting.h"
#include "svp/places/default_place.h"
#include "svp/scheduler/pool.h"

namespace tombolo::svp {

Exclusive::~Exclusive() {
  const std::uint64_t last = last_.load();
  TOMBOLO_CHECK(last == 0 || (Queue::is_biased(last) && !Queue::is_in(inside_[newest_].load())),
                "an exclusive place ends before its families are synced");
}

bool Exclusive::enter(QueuedTurn& turn, const Scope* creator) {
  const auto words = [this](std::uint64_t last) { return words_of((last % alignof(Worker)) >> 1); };
  if (Queue::enter(core_, &last_, number_of(turn), words, link_of, claim_of) == 0) return true;
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

Turn* Exclusive::leave(Turn& turn) {
  // Another worker's, or of a creator that did not wait, or behind another one.
  in_row_ = 0;
  if (is_inside(turn)) return leave_by_bias(turn, newest_);  // BTU4
  if (Queue::leave_alone(core_, &last_, number_of(turn), link_of)) return nullptr;
  return leave_to_next(turn);
}

Turn* Exclusive::leave_to_next(Turn& turn) {
  return turn_of(Queue::leave_to_next(core_, &last_, number_of(turn), link_of, claim_of,
                                      &Exclusive::await, &Exclusive::drop));
}

std::uint64_t Exclusive::next_bias(const Worker& worker) {
  if (biases_ == 0 && !Worker::Core::fences_asymmetrically()) biases_ = most_biases;
  if (biases_ == most_biases) return 0;
  newest_ = biases_++;
  next_row_ *= row_factor;
  return biased_to(worker, newest_);
}

// Another turn has come before the place was biased.
void Exclusive::take_back_bias() {
  --biases_;
  next_row_ /= row_factor;
}

void Exclusive::delegate(const QueuedTurn& turn) {
  (turn.pool == nullptr ? default_pool() : *turn.pool).delegate(*turn.task);
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
