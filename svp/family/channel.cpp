// SPDX-License-Identifier: Apache-2.0
#include "svp/family/channel.h"

#include "machine/waiting.h"
#include "svp/records/process_records.h"
#include "svp/scheduler/pool.h"
#include "svp/scheduler/worker.h"

namespace tombolo::svp {

// The holder may have lost its processor.
void Channel::lock() {
  static constexpr machine::WaitPolicy soon{.polls = 200};
  if ((state_.fetch_or(locked) & locked) == 0) return;
  machine::Waiter waiter(soon, nullptr);
  do {
    while ((state_.load(std::memory_order_relaxed) & locked) != 0)
      (void)waiter.step().ok();  // has no hook
  } while ((state_.fetch_or(locked) & locked) != 0);
}

// False: there is nothing to wait for.
bool Channel::list(Blocked& blocked) {
  lock();
  const bool open = (state_.load() & (has | closed)) == 0;
  if (open) {
    blocked.next = waiting_;
    waiting_ = &blocked;
    if (listener_ != nullptr) listener_->channel_changed();
  }
  unlock();
  return open;
}

bool Channel::unlist(const Blocked& blocked) {
  lock();
  Blocked** link = &waiting_;
  while (*link != nullptr && *link != &blocked) link = &(*link)->next;
  const bool found = *link != nullptr;
  if (found) *link = blocked.next;
  unlock();
  return found;
}

bool Channel::wait_slowly() {
  Worker* const worker = Worker::here();
  Blocked blocked;
  blocked.worker = worker;
  if (worker != nullptr) worker->prepare_to_block();
  if (list(blocked)) {
    if (worker == nullptr) {
      ProcessRecords::here().blocked().add();
      Pool::wait_outside(blocked);
    } else if (!worker->block(blocked)) {
      if (!unlist(blocked)) worker->await_delivery(blocked);
      throw Stopped{};
    }
  }
  return has_value();
}

void Channel::end_with(std::uint32_t end) {
  lock();
  Blocked* blocked = waiting_;
  waiting_ = nullptr;
  if (Worker* const writer = blocked == nullptr ? nullptr : Worker::here())
    writer->note(FamilyTrace::Event::write, {});
  state_.fetch_or(end);
  while (blocked != nullptr) {
    Blocked* const next = blocked->next;
    blocked->deliver();
    blocked = next;
  }
  if (listener_ != nullptr) listener_->channel_changed();
  unlock();
}

bool Channel::listen(ChannelListener& listener) {
  lock();
  const bool first = listener_ == nullptr;
  if (first) listener_ = &listener;
  unlock();
  return first;
}

void Channel::ignore() {
  lock();
  listener_ = nullptr;
  unlock();
}

bool Channel::awaited() {
  lock();
  const bool any = waiting_ != nullptr;
  unlock();
  return any;
}

}  // namespace tombolo::svp
