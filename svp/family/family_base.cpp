// SPDX-License-Identifier: Apache-2.0
#include "svp/family/family_base.h"

#include <utility>

#include "base/check.h"
#include "svp/places/default_place.h"
#include "svp/records/process_records.h"
#include "svp/scheduler/pool.h"

namespace tombolo::svp {

void FamilyBase::kill() {
  if (state.load() == Worker::Hand::done_value) return;
  if (stop(static_cast<std::uint32_t>(ExitReason::killed))) announce();
}

void FamilyBase::break_with(std::int64_t value) {
  if (stop(static_cast<std::uint32_t>(ExitReason::broken))) {
    value_ = value;
    announce();
  }
  throw Stopped{};
}

void FamilyBase::fail(std::exception_ptr error, bool alone) {
  if (!stop(static_cast<std::uint32_t>(ExitReason::failed))) return;
  std::construct_at(&error_, std::move(error));
  if (alone)
    announced_.store(silent, std::memory_order_release);
  else
    announce();
}

void FamilyBase::end_early() {
  if (stop(static_cast<std::uint32_t>(ExitReason::killed)))
    announced_.store(silent, std::memory_order_release);
}

void FamilyBase::announce() {
  Pool::raise_alarm();
  announced_.store(raised, std::memory_order_release);
}

void FamilyBase::delegate_to_default() { default_pool().delegate(*this); }

bool FamilyBase::await_end(Worker* worker, bool unless_stopped) {
  return worker != nullptr ? worker->wait(*this, unless_stopped)
                           : Pool::wait_outside(*this, unless_stopped);
}

void FamilyBase::count_joined(Worker* worker) {
  if (worker != nullptr) return worker->counts().awaited.add();
  ProcessRecords::here().created().add();
  Pool::outside_families().fetch_sub(1);
}

void FamilyBase::join(Worker* worker) {
  (void)await_end(worker, false);
  count_joined(worker);
}

Exit FamilyBase::sync_early(Worker* worker) {
  Exit end = exit_early();
  if (parent() != nullptr && parent()->stopped()) throw Stopped{};
  if (worker != nullptr && worker->wanted()) sync_attentively(*worker);
  return end;
}

void FamilyBase::sync_attentively(Worker& worker) {
  worker.note_end(*this);
  if (worker.attend()) throw Stopped{};
}

Exit FamilyBase::exit_early() {
  Exit exit{.reason = static_cast<ExitReason>(reason())};
  ProcessRecords& records = ProcessRecords::here();
  if (exit.reason == ExitReason::broken) records.broken().add();
  if (exit.reason == ExitReason::killed) records.killed().add();
  if (exit.reason == ExitReason::failed) records.failed().add();
  if (creator != nullptr) creator->note_end(*this);
  // VFA3: the one that stopped it may still be about to raise the alarm.
  while (announced_.load(std::memory_order_acquire) == not_yet) machine::relax_processor();
  if (announced_.load(std::memory_order_relaxed) == raised) Pool::retire_alarm();
  if (exit.reason == ExitReason::broken) exit.value = value_;
  if (exit.reason == ExitReason::failed) exit.error = std::move(error_);
  return exit;
}

void FamilyBase::leave_unsynced() {
  TOMBOLO_CHECK(std::uncaught_exceptions() > 0, "a family was created and not synced");
  kill();
}

}  // namespace tombolo::svp
