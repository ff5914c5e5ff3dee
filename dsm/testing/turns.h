// SPDX-License-Identifier: Apache-2.0
// Purpose: programs on regional or release consistency whose threads act one after the other, so
// that each step that a rare schedule alone would miss is missed at once.
//
//   run_in_turns<Copied>(two_threads, [](auto& thread, auto& turns) {
//     turns.take(0, 0, [&] { thread.store(0, 1); });
//     turns.take(1, 1, [&] { EXPECT_EQ(thread.load(0), 0U); });
//   });
//
// Thread safety: run_in_turns() from one thread at a time.
#pragma once

#include <gtest/gtest.h>

#include <atomic>

#include "dsm/testing/machines.h"

namespace tombolo::dsm::testing {

using Copied = Case<coherent::Core, Regional>;
using InPlace = Case<coherent::Core, Regional, ExposedPages>;
// Pages are copied, or lie in place, under release consistency.
using CopiedToAll = Case<coherent::Core, Release>;
using InPlaceToAll = Case<coherent::Core, Release, ExposedPages>;

// Variables 0 and 4 share page 0.
inline constexpr Shape two_threads{.threads = 2,
                                   .pages = 4,
                                   .page_bytes = 128,
                                   .cached_pages = 4,
                                   .locks = 2,
                                   .notices = 8,
                                   .updates = 4};

// The parts of a program that follow each other, each by one of its threads.
template <class Thread>
class Turns {
 public:
  Turns(Thread& thread, std::atomic<int>& next) : thread_(thread), next_(next) {}

  // As the `turn`-th part, from 0, if this is `actor`.
  template <class Body>
  void take(int turn, dsm::Thread actor, Body&& body) {
    if (thread_.self() != actor) return;
    while (next_ != turn) thread_.pause(5000);
    body();
    ++next_;
  }

 private:
  Thread& thread_;
  std::atomic<int>& next_;
};

// Calls body(thread, turns) for each thread.
template <class Case, class Body>
void run_in_turns(const Shape& shape, Body&& body) {
  std::atomic<int> next = 0;
  run<Case>(shape, 1, [&](auto& thread) {
    Turns turns(thread, next);
    body(thread, turns);
    thread.barrier();
    thread.close();
  });
}

// Under a lock of its own each.
template <class Thread>
void count_alone(Thread& thread, Variable v, std::uint64_t value) {
  thread.begin_span(thread.self());
  thread.store(v, value);
  thread.end_span(thread.self());
}

// A store outside of spans, and a span with nothing in it.
template <class Thread>
void store_and_send(Thread& thread, Variable v, std::uint64_t value) {
  thread.store(v, value);
  thread.begin_span(thread.self());
  thread.end_span(thread.self());
}
template <class Thread>
bool keeps(Thread& thread, Page page) {
  const PageNote* const note = thread.pages().lookup(page);
  return note != nullptr && note->kept;
}
// From here on thread 0 keeps page 0, which is left to its program.
template <class Thread>
void keep_by_stores(Thread& thread) {
  for (const std::uint64_t value : {1, 2}) store_and_send(thread, 0, value);
  ASSERT_TRUE(keeps(thread, 0));
  EXPECT_TRUE(thread.pages().writable(0));
}

}  // namespace tombolo::dsm::testing
