// SPDX-License-Identifier: Apache-2.0
// Purpose: programs whose threads act in turns (dsm/testing/turns.h), under release consistency:
// pages that a keeper has, and those that one thread has cleared.
// Thread safety: -
#include "dsm/protocol/release.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "dsm/testing/turns.h"

namespace tombolo::dsm::testing {
namespace {

TEST(ReleaseSteps, AThreadTellsItsStoresAmidASpanThatTellsAll) {
  run_in_turns<CopiedToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 0U); });
    turns.take(1, 0, [&] {
      thread.begin_span(0);
      thread.store(0, 1, false);
      thread.tell();
      thread.learn();
    });
    turns.take(2, 1, [&] {
      thread.learn();
      EXPECT_EQ(thread.load(0), 1U);
    });
    turns.take(3, 0, [&] { thread.end_span(0); });
  });
}

// Readers need no span of the same lock: their program knows of no regions.
TEST(ReleaseSteps, ReadersOfAPageThatIsChangedInASpanAreAllTold) {
  run_in_turns<InPlaceToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] { keep_by_stores(thread); });
    turns.take(1, 1, [&] { EXPECT_EQ(thread.load(0), 2U); });
    for (const int round : {0, 1}) {
      const std::uint64_t value = 3 + static_cast<std::uint64_t>(round);
      turns.take(2 + 2 * round, 0, [&] {
        count_alone(thread, 0, value);
        EXPECT_TRUE(keeps(thread, 0));
        EXPECT_FALSE(thread.pages().lookup(0)->shared) << "no copy is left that may stay";
      });
      turns.take(3 + 2 * round, 1, [&] {
        thread.begin_span(1);
        EXPECT_EQ(thread.load(0), value);
        thread.end_span(1);
      });
    }
  });
}

// It stays open, and there was no store since it was sent.
TEST(ReleaseSteps, APageThatIsOpenAndNotStoredToIsNotKept) {
  run_in_turns<InPlaceToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      thread.store(0, 1);
      thread.tell();
      ASSERT_TRUE(thread.pages().writable(0));
      thread.tell();
      EXPECT_FALSE(keeps(thread, 0));
    });
    thread.barrier();
    EXPECT_FALSE(keeps(thread, 0));
  });
}

TEST(ReleaseSteps, APageThatIsStoredToWithItsOwnContentsStaysOpen) {
  run_in_turns<InPlaceToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      thread.store(0, 0);
      thread.tell();
      EXPECT_TRUE(thread.pages().writable(0));
      count_alone(thread, 1, 0);
      EXPECT_TRUE(thread.pages().writable(1));
      for (int i = 0; i < 64; ++i) thread.tell();
      for (const Page page : {0, 1}) EXPECT_FALSE(thread.pages().writable(page)) << "not for ever";
    });
  });
}

// One page is brought besides the second of two that follow each other.
constexpr Shape in_streams() {
  Shape shape = two_threads;
  shape.pages = 8;
  shape.cached_pages = 8;
  shape.read_ahead = 1;
  return shape;
}
template <class Thread>
void store_in_order(Thread& thread, std::initializer_list<Variable> variables,
                    std::uint64_t value) {
  for (const Variable v : variables) thread.store(v, value);
  thread.tell();
}

TEST(ReleaseSteps, APageAheadOfAStreamIsNotKept) {
  run_in_turns<InPlaceToAll>(in_streams(), [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      for (const std::uint64_t value : {1, 2, 3}) {
        store_in_order(thread, {0, 1}, value);
        ASSERT_NE(thread.pages().lookup(2), nullptr) << "it is brought";
        EXPECT_EQ(keeps(thread, 1), value != 1);
        EXPECT_FALSE(keeps(thread, 2)) << "another thread may store to it";
      }
    });
  });
}

// The stores to pages 2 and 4 are not met, and are of the contents that are there.
TEST(ReleaseSteps, APageThatAStreamHasPassedIsKept) {
  run_in_turns<InPlaceToAll>(in_streams(), [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      for (const bool again : {false, true}) {
        store_in_order(thread, {0, 1, 3, 5}, 0);
        for (Page page = 0; page < 6; ++page) EXPECT_EQ(keeps(thread, page), again) << page;
        EXPECT_FALSE(keeps(thread, 6)) << "the stream has not come past it";
      }
    });
  });
}

// It would have to go home before the threads that use it could keep it.
TEST(ReleaseSteps, APageThatIsClearedInAStreamIsNotKept) {
  run_in_turns<InPlaceToAll>(in_streams(), [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      for (Variable v = 0; v < 8; ++v) thread.store(v, 0);
      for (Page page = 0; page < 8; ++page) EXPECT_FALSE(keeps(thread, page));
      thread.tell();
    });
    turns.take(1, 1, [&] {
      thread.learn();
      for (const std::uint64_t value : {1, 2}) store_and_send(thread, 5, value);
      EXPECT_TRUE(keeps(thread, 5));
    });
  });
}

// Memory is cleared in one thread, and used in another.
TEST(ReleaseSteps, AClearedPageIsKeptByTheNextThreadThatStores) {
  run_in_turns<InPlaceToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      for (const Variable v : {0, 1}) thread.store(v, v);
      thread.tell();
      EXPECT_FALSE(keeps(thread, 0));
    });
    turns.take(1, 1, [&] {
      thread.learn();
      for (const Variable v : {0, 1}) thread.store(v, 5);
      thread.tell();
      EXPECT_TRUE(keeps(thread, 0));
      EXPECT_FALSE(keeps(thread, 1)) << "it was changed, not cleared";
    });
    turns.take(2, 0, [&] {
      thread.learn();
      for (const Variable v : {0, 1}) EXPECT_EQ(thread.load(v), 5U);
    });
  });
}

// Page 2 is opened ahead of the stream of stores, and has none.
TEST(ReleaseSteps, APageThatAStreamHasNotComePastIsNotCleared) {
  run_in_turns<InPlaceToAll>(in_streams(), [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      store_in_order(thread, {0, 1}, 0);
      ASSERT_NE(thread.pages().lookup(2), nullptr) << "it is brought";
    });
    turns.take(1, 1, [&] {
      thread.learn();
      store_and_send(thread, 1, 7);
      EXPECT_TRUE(keeps(thread, 1));
      store_and_send(thread, 2, 7);
      EXPECT_FALSE(keeps(thread, 2)) << "no thread has cleared it";
    });
  });
}

TEST(ReleaseSteps, APageThatIsClearedAndThenChangedIsNotKeptAtOnce) {
  run_in_turns<InPlaceToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      thread.store(0, 0);
      thread.tell();
    });
    turns.take(1, 1, [&] {
      thread.begin_span(1);
      thread.store(0, 1);
      thread.end_span(1);
      store_and_send(thread, 0, 2);
      EXPECT_FALSE(keeps(thread, 0));
      store_and_send(thread, 0, 3);
      EXPECT_TRUE(keeps(thread, 0));
    });
  });
}

TEST(ReleaseSteps, AThreadThatClearsAPageForAnotherTimeKeepsItByItsOwnStores) {
  run_in_turns<InPlaceToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      store_and_send(thread, 0, 0);
      ASSERT_TRUE(thread.protocol().evict(0).ok());
      store_and_send(thread, 0, 0);
      EXPECT_FALSE(keeps(thread, 0)) << "it has no note of the first time, and no other cleared it";
    });
  });
}

// Thread 0 keeps five pages that thread 1 has got: none of them is looked at for differences.
TEST(ReleaseSteps, APageStaysOpenBesideKeptOnes) {
  Shape shape = two_threads;
  shape.pages = shape.cached_pages = 8;
  run_in_turns<InPlaceToAll>(shape, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      for (const std::uint64_t value : {1, 2}) {
        for (Variable v = 0; v < 5; ++v) thread.store(v, value);
        thread.tell();
      }
    });
    turns.take(1, 1, [&] {
      for (Variable v = 0; v < 5; ++v) EXPECT_EQ(thread.load(v), 2U);
    });
    turns.take(2, 0, [&] {
      thread.store(5, 1);
      thread.tell();
      EXPECT_TRUE(thread.pages().writable(5));
      EXPECT_FALSE(keeps(thread, 5));
    });
  });
}

}  // namespace
}  // namespace tombolo::dsm::testing
