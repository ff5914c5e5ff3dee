// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "dsm/threads/objects/readers_writer_locks.h"
#include "dsm/threads/runtime_hooks.h"

namespace tombolo::dsm {
namespace {

// The first word of such a lock: how many read, or this bit and the number of the thread that
// writes.
constexpr std::uint64_t writing = std::uint64_t{1} << 63;

}  // namespace

int ReadersWriterLocks::init(const void* lock) {
  objects_.add(lock);
  return 0;
}

std::uint64_t ReadersWriterLocks::writing_by_self() const {
  return writing | (std::uint64_t{memory_.self()} + 1);
}

bool ReadersWriterLocks::writes(const Object& object) {
  return memory_.load(object.word) == writing_by_self();
}

bool ReadersWriterLocks::enter_to_read(const Object& object) {
  std::uint64_t state = memory_.load(object.word);
  while ((state & writing) == 0) {
    const std::uint64_t found = memory_.compare_exchange(object.word, state, state + 1);
    if (found == state) return true;
    state = found;
  }
  return false;
}

bool ReadersWriterLocks::enter_to_write(const Object& object) {
  return memory_.load(object.word) == 0 &&
         memory_.compare_exchange(object.word, 0, writing_by_self()) == 0;
}

int ReadersWriterLocks::read(const void* lock, const Deadline* deadline) {
  const Object object = objects_.find(lock);
  if (writes(object)) return EDEADLK;
  bool entered = enter_to_read(object);
  if (!entered && deadline != nullptr && !deadline->valid()) return EINVAL;
  wait_until(memory_, [&] {
    if (!entered) entered = enter_to_read(object);
    return entered || (deadline != nullptr && deadline->passed());
  });
  if (!entered) return ETIMEDOUT;
  hand_over(memory_, object.lock);  // RWL2
  return 0;
}

int ReadersWriterLocks::write(const void* lock, const Deadline* deadline) {
  const Object object = objects_.find(lock);
  if (writes(object)) return EDEADLK;
  bool entered = enter_to_write(object);
  if (!entered && deadline != nullptr && !deadline->valid()) return EINVAL;
  wait_until(memory_, [&] {
    if (!entered) entered = enter_to_write(object);
    return entered || (deadline != nullptr && deadline->passed());
  });
  if (!entered) return ETIMEDOUT;
  must(memory_.acquire(object.lock));  // RWL2
  return 0;
}

int ReadersWriterLocks::try_read(const void* lock) {
  const Object object = objects_.find(lock);
  if (!enter_to_read(object)) return EBUSY;
  hand_over(memory_, object.lock);  // RWL2
  return 0;
}

int ReadersWriterLocks::try_write(const void* lock) {
  const Object object = objects_.find(lock);
  if (!enter_to_write(object)) return EBUSY;
  must(memory_.acquire(object.lock));  // RWL2
  return 0;
}

int ReadersWriterLocks::unlock(const void* lock) {
  const Object object = objects_.find(lock);
  if (writes(object)) {
    must(memory_.release(object.lock));
    memory_.store(object.word, 0);
    return 0;
  }
  const std::uint64_t state = memory_.load(object.word);
  if (state == 0 || (state & writing) != 0) return EPERM;
  // The stores of a reader are there before a writer enters (RWL1).
  hand_over(memory_, object.lock);
  memory_.fetch_add(object.word, ~std::uint64_t{0});
  return 0;
}

int ReadersWriterLocks::destroy(const void* lock) {
  const Object object = objects_.find(lock);
  if (memory_.load(object.word) != 0) return EBUSY;
  objects_.remove(lock);
  return 0;
}

}  // namespace tombolo::dsm
