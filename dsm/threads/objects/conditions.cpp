// SPDX-License-Identifier: Apache-2.0
#include "dsm/threads/objects/conditions.h"

#include <cerrno>

#include "dsm/threads/runtime_hooks.h"

namespace tombolo::dsm {

Conditions::Queue Conditions::find(const void* condition) {
  const Object object = objects_.find(condition);
  return {.mutex = object.word, .first = object.word + 1, .last = object.word + 2};
}

// Held for some words only: nothing in between may end the thread.
void Conditions::lock(const Queue& queue) {
  while (memory_.compare_exchange(queue.mutex, 0, 1) != 0) must(memory_.pause());
  memory_.paused_enough();
}

// At the end.
void Conditions::join(const Queue& queue) {
  const std::uint64_t self = std::uint64_t{memory_.self()} + 1;
  const Waiter own = objects_.waiter(memory_.self());
  memory_.store(own.next, 0);
  memory_.store(own.woken, 0);
  lock(queue);
  const std::uint64_t last = memory_.exchange(queue.last, self);
  if (last == 0)
    memory_.store(queue.first, self);
  else
    memory_.store(objects_.waiter(static_cast<Thread>(last - 1)).next, self);
  unlock(queue);
}

// False if a signal was faster.
bool Conditions::leave(const Queue& queue) {
  const std::uint64_t self = std::uint64_t{memory_.self()} + 1;
  lock(queue);
  std::uint64_t before = 0;
  std::uint64_t at = memory_.load(queue.first);
  while (at != 0 && at != self) {
    before = at;
    at = memory_.load(objects_.waiter(static_cast<Thread>(at - 1)).next);
  }
  if (at == self) {
    const std::uint64_t next = memory_.load(objects_.waiter(memory_.self()).next);
    if (before == 0)
      memory_.store(queue.first, next);
    else
      memory_.store(objects_.waiter(static_cast<Thread>(before - 1)).next, next);
    if (next == 0) memory_.store(queue.last, before);
  }
  unlock(queue);
  return at == self;
}

// A thread that is cancelled has the mutex when its cleanup handlers run. A signal that it was
// given goes to another one.
struct Conditions::Cancelled {
  Conditions& all;
  const Queue& queue;
  const void* mutex;
  MutexKind kind;
  bool off = false;

  ~Cancelled() {
    if (off) return;
    if (!all.leave(queue)) all.wake_one(queue);
    all.mutexes_.lock(mutex, kind);
  }
};

int Conditions::wait(const void* condition, const void* mutex, MutexKind kind,
                     const Deadline* deadline) {
  const Queue queue = find(condition);
  if (deadline != nullptr && !deadline->valid()) return EINVAL;
  join(queue);  // PCD1
  if (const int error = mutexes_.unlock(mutex, kind); error != 0) {
    leave(queue);
    return error;
  }
  const WordIndex woken = objects_.waiter(memory_.self()).woken;
  bool late = false;
  Cancelled cancelled{*this, queue, mutex, kind};
  wait_cancellably(memory_, [&] {
    if (memory_.load(woken) != 0) return true;
    // After leave() has failed the signal is on its way (PCD2).
    late = !late && deadline != nullptr && deadline->passed() && leave(queue);
    return late;
  });
  cancelled.off = true;
  const int error = mutexes_.lock(mutex, kind);
  return error == 0 && late ? ETIMEDOUT : error;
}

// The thread's number + 1, or 0.
std::uint64_t Conditions::take_first(const Queue& queue) {
  const std::uint64_t first = memory_.load(queue.first);
  if (first == 0) return 0;
  const std::uint64_t next = memory_.load(objects_.waiter(static_cast<Thread>(first - 1)).next);
  memory_.store(queue.first, next);
  if (next == 0) memory_.store(queue.last, 0);
  return first;
}

// False if none waits.
bool Conditions::wake_first(const Queue& queue) {
  const std::uint64_t first = take_first(queue);
  if (first == 0) return false;
  memory_.store(objects_.waiter(static_cast<Thread>(first - 1)).woken, 1);
  return true;
}

void Conditions::wake_one(const Queue& queue) {
  lock(queue);
  wake_first(queue);
  unlock(queue);
}

int Conditions::signal(const void* condition) {
  const Queue queue = find(condition);
  if (memory_.load(queue.first) != 0) wake_one(queue);  // PCD1
  return 0;
}

int Conditions::broadcast(const void* condition) {
  const Queue queue = find(condition);
  if (memory_.load(queue.first) == 0) return 0;  // PCD1
  lock(queue);
  while (wake_first(queue)) {
  }
  unlock(queue);
  return 0;
}

int Conditions::destroy(const void* condition) {
  const Queue queue = find(condition);
  if (memory_.load(queue.first) != 0) return EBUSY;
  // The thread that has woken the last one may still be in the queue.
  lock(queue);
  objects_.remove(condition);
  return 0;
}

}  // namespace tombolo::dsm
