// SPDX-License-Identifier: Apache-2.0
#include "svp/channels/channel.h"

#include <utility>

#include "machine/waiting.h"
#include "svp/family/external_threads.h"
#include "svp/records/process_records.h"
#include "svp/scheduler/pool.h"
#include "svp/scheduler/worker.h"

namespace tombolo::svp {
namespace {

// To the readers of a channel, whose end is in the trace once.
class Delivery {
 public:
  void operator()(std::uint64_t reader) {
    Worker* const writer = std::exchange(noted_, true) ? nullptr : Worker::here();
    if (writer != nullptr) writer->note(FamilyTrace::Event::write, {});
    Blocked::of(reader)->deliver();
  }

 private:
  bool noted_ = false;
};

// Until the event has come. False: the thread's family was stopped before.
bool block(Worker* worker, Blocked& blocked) {
  if (worker != nullptr) return worker->block(blocked);
  if (ExternalThreads* const threads = ExternalThreads::here()) return threads->block(blocked);
  ProcessRecords::here().blocked().add();
  Pool::wait_outside(blocked);
  return true;
}

}  // namespace

Channel::Core& Channel::core() {
  static Core words_of_threads{Core::Attachment{}};
  return words_of_threads;
}

// The holder of the lock may have lost its processor.
void Channel::await_unlock(Core::Word state) {
  static constexpr machine::WaitPolicy soon{.polls = 200};
  machine::Waiter waiter(soon, nullptr);
  // relaxed: the protocol looks again.
  while ((state->load(std::memory_order_relaxed) & Protocol::locked) != 0)
    (void)waiter.step().ok();  // has no hook
}

void Channel::tell(std::uint64_t listener) {
  if (listener != 0) reinterpret_cast<ChannelListener*>(listener)->channel_changed();
}

bool Channel::wait_slowly() {
  Worker* const worker = Worker::here();
  Blocked blocked;
  blocked.worker = worker;
  if (worker != nullptr) worker->prepare_to_block();
  if (Protocol::list(core(), words(), Blocked::number_of(blocked), Blocked::link_of, await_unlock,
                     tell) &&
      !block(worker, blocked)) {
    const bool delivered = !Protocol::unlist(core(), words(), Blocked::number_of(blocked),
                                             Blocked::link_of, await_unlock);
    // External threads share one thread of the system: the delivery is over.
    if (delivered && worker != nullptr) worker->await_delivery(blocked);
    throw Stopped{};
  }
  return has_value();
}

void Channel::written() {
  Protocol::end(core(), words(), Protocol::has, Blocked::link_of, await_unlock, Delivery(), tell);
}

void Channel::close() {
  Protocol::close(core(), words(), Blocked::link_of, await_unlock, Delivery(), tell);
}

bool Channel::listen(ChannelListener& listener) {
  return Protocol::listen(core(), words(), reinterpret_cast<std::uintptr_t>(&listener),
                          await_unlock);
}

void Channel::ignore() { Protocol::ignore(core(), words(), await_unlock); }

}  // namespace tombolo::svp
