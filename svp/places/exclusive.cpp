// SPDX-License-Identifier: Apache-2.0
#include "svp/places/exclusive.h"

#include "base/check.h"
#include "machine/waiting.h"
#include "svp/scheduler/pool.h"

namespace tombolo::svp {

Exclusive::~Exclusive() {
  TOMBOLO_CHECK(last_.load() == nullptr, "an exclusive place ends before its families are synced");
}

bool Exclusive::enter(Turn& turn, const Scope* creator) {
  // relaxed: if it is a scope above the creator, then this thread is within that family, and the
  // store came before its threads.
  const Scope* const serving = serving_.load(std::memory_order_relaxed);
  TOMBOLO_CHECK(
      serving == nullptr || creator == nullptr || !creator->within(*serving),
      "create at an exclusive place, from within a family of that place: neither could end");
  Turn* const before = last_.exchange(&turn, std::memory_order_acq_rel);
  if (before == nullptr) return true;
  before->next.store(&turn, std::memory_order_release);
  return false;
}

// The next turn, which is the first now; null: the queue is empty.
Turn* Exclusive::leave(Turn& turn) {
  if (Turn* const next = turn.next.load(std::memory_order_acquire)) return next;
  Turn* expected = &turn;
  if (last_.compare_exchange_strong(expected, nullptr)) return nullptr;
  // Another thread is between its exchange and its link.
  Turn* next = nullptr;
  while ((next = turn.next.load(std::memory_order_acquire)) == nullptr) machine::relax_processor();
  return next;
}

void Exclusive::run(Turn& turn, Worker& worker) {
  // relaxed: see enter().
  serving_.store(turn.scope, std::memory_order_relaxed);
  turn.body(*turn.task, worker);
  serving_.store(nullptr, std::memory_order_relaxed);
}

void Exclusive::serve_own(Turn& first, Worker& worker) {
  run(first, worker);
  if (Turn* const next = leave(first)) worker.pool().delegate(*next->task);  // VEX2
}

void Exclusive::serve(Turn& first, Worker& worker) {
  const bool has_own_stack = worker.is_from_loop(*first.task);
  Turn* turn = &first;
  for (unsigned served = 1; turn != nullptr; ++served) {
    run(*turn, worker);
    Turn* const next = leave(*turn);
    worker.finish(*turn->task);
    if (next != nullptr && (!has_own_stack || served == in_a_row))
      return worker.pool().delegate(*next->task);
    turn = next;
  }
}

}  // namespace tombolo::svp
