// SPDX-License-Identifier: Apache-2.0
// Purpose: random programs by threads that run at once: loads, stores, spans, conditions, barriers
// and reductions over pages that all share, with evictions at random moments. All loads are held
// against the rules of regional consistency, which need no more than numbers here, or of sequential
// consistency:
//
//   variables of a thread   it stores 1, 2, 3, ...; others load any that is not older than the last
//                           barrier, and not older than they were told in a span; under
//                           sequential consistency, than those that are done
//   variables of a lock     counted up in its spans: no count is lost, and none is old there. One
//                           says whose turn it is, for which threads wait as for a condition
//
//   random_programs::run_all<Case>(programs, page_bytes, more);
//
// The numbers that all threads know are a Score: in memory that threads share, or elsewhere.
//
// A failure names the seed of the program. litmus/programs/random_memory_test.cpp judges finer, on
// threads that do not run at once.
// Thread safety: -
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>

#include "base/random.h"
#include "dsm/testing/machines.h"

namespace tombolo::dsm::testing::random_programs {

constexpr std::size_t most_threads = 4;
constexpr Lock locks = 2;
// By variable: two of each thread, then two of each lock, then one of each lock in which a thread
// tells the number of its own stores, then one of each lock for turns.
constexpr std::uint64_t of_threads = 2 * most_threads;
constexpr std::uint64_t of_locks = 2 * locks;

// `more`: pages than the smallest programs have, and cached ones likewise.
inline Shape drawn(std::uint64_t seed, std::size_t page_bytes, std::uint32_t more) {
  Random random = Random::stream(seed, 1);
  return {.threads = static_cast<Thread>(2 + random.below(most_threads - 1)),
          .servers = static_cast<Thread>(random.below(3)),
          .pages = 2 + random.below(3) + more,
          .page_bytes = page_bytes,
          .cached_pages = static_cast<std::uint32_t>(1 + random.below(6)) + more,
          .locks = locks,
          .notices = static_cast<std::uint32_t>(1 + random.below(8)),
          .updates = static_cast<std::uint32_t>(1 + random.below(8)),
          .read_ahead = static_cast<std::uint32_t>(random.below(3))};
}

// Of threads of this process.
class Score {
 public:
  // `in_order`: under sequential consistency.
  explicit Score(bool in_order) : in_order_(in_order) {}

  // Of a thread's variable, by that thread: the store that it begins, and the last that is done.
  std::uint64_t stored(Variable v) const { return stored_[v]; }
  std::uint64_t seen_by_all(Variable v) const { return in_order_ ? done_[v].load() : 0; }
  void set_done(Variable v, std::uint64_t number) { done_[v] = number; }
  void set_stored(Variable v, std::uint64_t number) { stored_[v] = number; }
  // Of a lock's variable: by the holder of the lock.
  std::uint64_t counted(std::uint64_t i) const { return counted_[i]; }
  void set_counted(std::uint64_t i, std::uint64_t number) { counted_[i] = number; }

  bool failed() const { return ::testing::Test::HasFailure(); }
  // Does not return.
  [[noreturn]] void fail(const std::string& why) const {
    ADD_FAILURE() << why;
    throw GivenUp();
  }

 private:
  bool in_order_;
  std::array<std::atomic<std::uint64_t>, of_threads> stored_{};
  std::array<std::atomic<std::uint64_t>, of_threads> done_{};
  std::array<std::uint64_t, of_locks + locks> counted_{};
};

template <class Memory, class Score>
class RandomProgram {
 public:
  RandomProgram(Memory& memory, Score& score, std::uint64_t seed)
      : memory_(memory),
        score_(score),
        seed_(seed),
        common_(Random::stream(seed, 9)),
        random_(Random::stream(seed, 10 + memory.self())) {}

  void go(int rounds) {
    for (int round = 0; round < rounds && !score_.failed(); ++round) {
      for (int i = 0; i < 12; ++i) step();
      if (common_.one_in(2)) take_turns(static_cast<Lock>(common_.below(locks)));
      meet();
    }
    memory_.close();
  }

 private:
  void step() {
    if (random_.one_in(5)) memory_.evict(random_.below(memory_.shape().pages));
    if (random_.one_in(9)) memory_.pause(random_.below(3000));
    switch (random_.below(4)) {
      case 0:
        return look_at(random_.below(of_threads));
      case 1:
        return store_own(random_.below(2), random_.one_in(2));
      default:
        return span(static_cast<Lock>(random_.below(locks)));
    }
  }

  Variable own(std::uint64_t which) { return 2 * memory_.self() + which; }
  void store_own(std::uint64_t which, bool recorded) {
    const Variable v = own(which);
    // Now and then the value that is there already: the page is written, and not changed.
    if (!random_.one_in(4)) score_.set_stored(v, score_.stored(v) + 1);
    memory_.store(v, score_.stored(v), recorded);
    score_.set_done(v, score_.stored(v));
  }
  void look_at(Variable v) {
    const std::uint64_t least = std::max(least_[v], score_.seen_by_all(v));
    const std::uint64_t seen = memory_.load(v);
    check(v, seen, least, score_.stored(v));
    least_[v] = std::max(least_[v], seen);
  }

  void begin(Lock lock) {
    if (random_.one_in(3))
      // Not all the same: in virtual time a thread might look for ever when the lock is taken.
      while (!memory_.try_begin_span(lock)) memory_.pause(500 + random_.below(1000));
    else
      memory_.begin_span(lock);
  }

  void span(Lock lock) {
    begin(lock);
    const Lock other = lock + 1;
    const bool nested = other < locks && random_.one_in(3);
    count(lock);
    if (nested) {
      inner(other);
      memory_.end_span(other);
      count(lock);
      inner(other);
      count(lock);
    }
    tell_or_learn(lock);
    if (nested) memory_.end_span(other);
    memory_.end_span(lock);
  }
  void inner(Lock lock) {
    begin(lock);
    count(lock);
    if (random_.one_in(2)) store_own(1, random_.one_in(2));
  }

  void count(Lock lock) {
    for (std::uint64_t which = 0; which < 2; ++which) {
      if (random_.one_in(3)) continue;
      const std::uint64_t i = 2 * lock + which;
      count_up(of_threads + i, i);
    }
  }
  void count_up(Variable v, std::uint64_t i) {
    const std::uint64_t number = score_.counted(i);
    check(v, memory_.load(v), number, number);
    score_.set_counted(i, number + 1);
    memory_.store(v, number + 1, random_.one_in(2));
  }

  // The first variable of each thread is stored to outside of spans alone. Its number of before a
  // span, told in the span, binds the threads that read it in a later one.
  void tell_or_learn(Lock lock) {
    const Variable board = of_threads + of_locks + lock;
    const std::uint64_t told = memory_.load(board);
    const std::uint64_t number = told >> 8;
    const Variable v = 2 * (told & 0xff);
    if (number != 0) {
      least_[v] = std::max(least_[v], number);
      look_at(v);
    }
    if (random_.one_in(2))
      memory_.store(board, score_.stored(own(0)) << 8 | memory_.self(), random_.one_in(2));
  }

  // Each thread once, in their order.
  void take_turns(Lock lock) {
    const Variable turn = of_threads + of_locks + locks + lock;
    memory_.begin_span(lock);
    while (memory_.load(turn) % memory_.shape().threads != memory_.self()) memory_.wait(lock);
    count(lock);
    count_up(turn, of_locks + lock);
    memory_.wake_all(lock);
    memory_.end_span(lock);
  }

  // By the barrier, by its two halves around another wait of all threads, or where spans tell all
  // by a lock that is handed over before that and behind it.
  void meet() {
    if (common_.one_in(2)) {
      memory_.barrier();
    } else if (Memory::tells_all && common_.one_in(2)) {
      const Lock lock = static_cast<Lock>(common_.below(locks));
      memory_.hand_over(lock);
      memory_.sum(0);
      memory_.hand_over(lock);
    } else {
      memory_.tell();
      memory_.sum(0);
      memory_.learn();
    }
    for (Variable v = 0; v < of_threads; ++v) {
      const std::uint64_t stored = score_.stored(v);
      check(v, memory_.load(v), stored, stored);
      least_[v] = stored;
    }
    for (std::uint64_t i = 0; i < of_locks; ++i)
      check(of_threads + i, memory_.load(of_threads + i), score_.counted(i), score_.counted(i));
    // The numbers above are compared before any thread goes on.
    const std::uint64_t threads = memory_.shape().threads;
    check(99, memory_.sum(memory_.self()), threads * (threads - 1) / 2,
          threads * (threads - 1) / 2);
  }

  void check(Variable v, std::uint64_t seen, std::uint64_t from, std::uint64_t to) {
    if (from <= seen && seen <= to) return;
    score_.fail(fmt::format("seed {}: thread {} of {} sees {} in variable {}, not {} to {}", seed_,
                            memory_.self(), memory_.shape().threads, seen, v, from, to));
  }

  Memory& memory_;
  Score& score_;
  std::uint64_t seed_;
  Random common_;  // alike in all threads
  Random random_;
  std::array<std::uint64_t, of_threads> least_{};
};

// With the seeds from 1 on.
template <class Case>
void run_all(std::uint64_t programs, std::size_t page_bytes, std::uint32_t more = 0,
             const Tuning& tuning = {}) {
  for (std::uint64_t seed = 1; seed <= programs && !::testing::Test::HasFailure(); ++seed) {
    Score score(Case::Protocol::polls);
    Shape shape = drawn(seed, page_bytes, more);
    shape.tuning = tuning;
    run<Case>(shape, seed, [&](auto& memory) { RandomProgram(memory, score, seed).go(6); });
  }
}

}  // namespace tombolo::dsm::testing::random_programs
