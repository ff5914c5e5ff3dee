// SPDX-License-Identifier: Apache-2.0
// Purpose: random programs by threads that run at once: loads, stores, spans, barriers and
// reductions over pages that all share, with evictions at random moments. All loads are held
// against the rules of regional consistency, which need no more than numbers here:
//
//   variables of a thread   it stores 1, 2, 3, ...; others load any that is not older than the last
//                           barrier, and not older than they were told in a span
//   variables of a lock     counted up in its spans: no count is lost, and none is old there
//
//   random_programs::run_all<Case>(programs, page_bytes, more);
//
// A failure names the seed of the program. litmus/programs/random_memory_test.cpp judges finer, on
// threads that do not run at once.
// Thread safety: -
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/random.h"
#include "dsm/testing/machines.h"

namespace tombolo::dsm::testing::random_programs {

constexpr std::size_t most_threads = 4;
constexpr Lock locks = 2;
// By variable: two of each thread, then two of each lock, then one of each lock in which a thread
// tells the number of its own stores.
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

// The numbers that all threads know, beside the memory under test.
struct Score {
  std::array<std::atomic<std::uint64_t>, of_threads> stored{};
  std::array<std::uint64_t, of_locks> counted{};  // by the holder of the lock
};

template <class Memory>
class RandomProgram {
 public:
  RandomProgram(Memory& memory, Score& score, std::uint64_t seed)
      : memory_(memory),
        score_(score),
        seed_(seed),
        random_(Random::stream(seed, 10 + memory.self())) {}

  void go(int rounds) {
    for (int round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
      for (int i = 0; i < 12; ++i) step();
      meet();
    }
    memory_.close();
  }

 private:
  void step() {
    if (random_.one_in(5)) memory_.evict(random_.below(memory_.shape().pages));
    if (random_.one_in(9)) memory_.must(memory_.core().pause(random_.below(3000)));
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
    if (!random_.one_in(4)) ++score_.stored[v];
    memory_.store(v, score_.stored[v], recorded);
  }
  void look_at(Variable v) {
    const std::uint64_t seen = memory_.load(v);
    check(v, seen, least_[v], score_.stored[v]);
    least_[v] = std::max(least_[v], seen);
  }

  void begin(Lock lock) {
    if (random_.one_in(3))
      while (!memory_.try_begin_span(lock)) memory_.must(memory_.core().pause(1000));
    else
      memory_.begin_span(lock);
  }

  void span(Lock lock) {
    begin(lock);
    const Lock other = lock + 1;
    const bool nested = other < locks && random_.one_in(3);
    count(lock);
    if (nested) {
      begin(other);
      count(other);
      if (random_.one_in(2)) store_own(1, random_.one_in(2));
    }
    tell_or_learn(lock);
    if (nested) memory_.end_span(other);
    memory_.end_span(lock);
  }

  void count(Lock lock) {
    for (std::uint64_t which = 0; which < 2; ++which) {
      if (random_.one_in(3)) continue;
      const std::uint64_t i = 2 * lock + which;
      const Variable v = of_threads + i;
      check(v, memory_.load(v), score_.counted[i], score_.counted[i]);
      memory_.store(v, ++score_.counted[i], random_.one_in(2));
    }
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
      memory_.store(board, score_.stored[own(0)] << 8 | memory_.self(), random_.one_in(2));
  }

  void meet() {
    memory_.barrier();
    for (Variable v = 0; v < of_threads; ++v) {
      const std::uint64_t stored = score_.stored[v];
      check(v, memory_.load(v), stored, stored);
      least_[v] = stored;
    }
    for (std::uint64_t i = 0; i < of_locks; ++i)
      check(of_threads + i, memory_.load(of_threads + i), score_.counted[i], score_.counted[i]);
    // The numbers above are compared before any thread goes on.
    const std::uint64_t threads = memory_.shape().threads;
    check(99, memory_.sum(memory_.self()), threads * (threads - 1) / 2,
          threads * (threads - 1) / 2);
  }

  void check(Variable v, std::uint64_t seen, std::uint64_t from, std::uint64_t to) {
    if (from <= seen && seen <= to) return;
    ADD_FAILURE() << "seed " << seed_ << ": thread " << memory_.self() << " of "
                  << memory_.shape().threads << " sees " << seen << " in variable " << v << ", not "
                  << from << " to " << to;
    throw GivenUp();
  }

  Memory& memory_;
  Score& score_;
  std::uint64_t seed_;
  Random random_;
  std::array<std::uint64_t, of_threads> least_{};
};

// With the seeds from 1 on.
template <class Case>
void run_all(std::uint64_t programs, std::size_t page_bytes, std::uint32_t more = 0) {
  for (std::uint64_t seed = 1; seed <= programs && !::testing::Test::HasFailure(); ++seed) {
    Score score;
    run<Case>(drawn(seed, page_bytes, more), seed,
              [&](auto& memory) { RandomProgram(memory, score, seed).go(6); });
  }
}

}  // namespace tombolo::dsm::testing::random_programs
