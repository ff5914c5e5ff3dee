// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "dsm/threads/objects/semaphores.h"
#include "dsm/threads/runtime_hooks.h"

namespace tombolo::dsm {

// The first word of a semaphore: its value.

int Semaphores::init(const void* semaphore, std::uint64_t value) {
  if (value > most) return EINVAL;
  const Object object = objects_.add(semaphore);
  memory_.store(object.word, value);
  return 0;
}

int Semaphores::post(const void* semaphore) {
  const Object object = objects_.find(semaphore);
  hand_over(memory_, object.lock);  // SEM1
  std::uint64_t value = memory_.load(object.word);
  for (;;) {
    if (value >= most) return EOVERFLOW;
    const std::uint64_t found = memory_.compare_exchange(object.word, value, value + 1);
    if (found == value) return 0;
    value = found;
  }
}

bool Semaphores::take(WordIndex count) {
  std::uint64_t value = memory_.load(count);
  while (value > 0) {
    const std::uint64_t found = memory_.compare_exchange(count, value, value - 1);
    if (found == value) return true;
    value = found;
  }
  return false;
}

int Semaphores::wait(const void* semaphore, const Deadline* deadline) {
  const Object object = objects_.find(semaphore);
  bool taken = take(object.word);
  if (!taken && deadline != nullptr && !deadline->valid()) return EINVAL;
  wait_cancellably(memory_, [&] {
    if (!taken) taken = take(object.word);
    return taken || (deadline != nullptr && deadline->passed());
  });
  if (!taken) return ETIMEDOUT;
  hand_over(memory_, object.lock);  // SEM1
  return 0;
}

int Semaphores::try_wait(const void* semaphore) {
  const Object object = objects_.find(semaphore);
  if (!take(object.word)) return EAGAIN;
  hand_over(memory_, object.lock);  // SEM1
  return 0;
}

int Semaphores::value(const void* semaphore, int& out) {
  const Object object = objects_.find(semaphore);
  out = static_cast<int>(memory_.load(object.word));
  return 0;
}

int Semaphores::destroy(const void* semaphore) {
  objects_.remove(semaphore);
  return 0;
}

}  // namespace tombolo::dsm
