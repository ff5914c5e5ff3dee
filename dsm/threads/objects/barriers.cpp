// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "dsm/threads/objects/barriers.h"
#include "dsm/threads/runtime_hooks.h"

namespace tombolo::dsm {
namespace {

// The words of a barrier.
constexpr WordIndex count_word = 0;    // threads that it waits for, and from bit 32 on those inside
constexpr WordIndex arrived_word = 1;  // of this round
constexpr WordIndex round_word = 2;

constexpr std::uint64_t one_inside = std::uint64_t{1} << 32;

}  // namespace

int Barriers::init(const void* barrier, std::uint64_t count) {
  if (count == 0 || count >= one_inside) return EINVAL;
  const Object object = objects_.add(barrier);
  memory_.store(object.word + count_word, count);
  return 0;
}

int Barriers::wait(const void* barrier, bool& last) {
  const Object object = objects_.find(barrier);
  const std::uint64_t count = memory_.load(object.word + count_word) % one_inside;
  if (count == 0) return EINVAL;
  memory_.fetch_add(object.word + count_word, one_inside);
  const std::uint64_t round = memory_.load(object.word + round_word);
  must(memory_.tell());  // BAR1
  last = memory_.fetch_add(object.word + arrived_word, 1) + 1 == count;
  if (last) {
    // The next round begins when this one is told to have ended.
    memory_.store(object.word + arrived_word, 0);
    memory_.store(object.word + round_word, round + 1);
  } else {
    wait_until(memory_, [&] { return memory_.load(object.word + round_word) != round; });
  }
  must(memory_.learn());  // BAR1
  memory_.fetch_add(object.word + count_word, ~one_inside + 1);
  return 0;
}

// A thread that has passed the barrier may destroy it while others are on their way out.
int Barriers::destroy(const void* barrier) {
  const Object object = objects_.find(barrier);
  if (memory_.load(object.word + arrived_word) != 0) return EBUSY;
  wait_until(memory_, [&] { return memory_.load(object.word + count_word) < one_inside; });
  objects_.remove(barrier);
  return 0;
}

}  // namespace tombolo::dsm
