// SPDX-License-Identifier: Apache-2.0
// Purpose: programs whose threads act in turns (dsm/testing/turns.h), under release consistency:
// changes that are in their notices, and that go with a lock that is handed over.
// Thread safety: -
#include "dsm/protocol/release.h"

#include <gtest/gtest.h>

#include "dsm/testing/turns.h"

namespace tombolo::dsm::testing {
namespace {

template <class Thread>
void expect_patched(Thread& thread, std::uint64_t version) {
  thread.begin_span(thread.self());
  const PageNote* const note = thread.pages().lookup(0);
  ASSERT_NE(note, nullptr) << "the page is dropped at version " << version;
  EXPECT_EQ(note->version, version);
  thread.end_span(thread.self());
}

TEST(ReleaseSteps, AChangeInANoticePatchesThePageUnderAnyLock) {
  run_in_turns<CopiedToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 0U); });
    for (const int round : {0, 1, 2}) {
      const auto value = static_cast<std::uint64_t>(round) + 1;
      turns.take(4 * round + 1, 0, [&] { count_alone(thread, 0, value); });
      turns.take(4 * round + 2, 1, [&] {
        expect_patched(thread, 2 * value - 1);
        EXPECT_EQ(thread.load(0), value);
      });
      turns.take(4 * round + 3, 1, [&] { count_alone(thread, 4, value + 10); });
      turns.take(4 * round + 4, 0, [&] {
        expect_patched(thread, 2 * value);
        EXPECT_EQ(thread.load(4), value + 10);
      });
    }
  });
}

// The page of thread 0 stays writable after its span, with a twin.
TEST(ReleaseSteps, AChangeInANoticeGoesIntoTheTwinToo) {
  run_in_turns<CopiedToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] { count_alone(thread, 0, 1); });
    turns.take(1, 1, [&] { count_alone(thread, 4, 2); });
    turns.take(2, 0, [&] { count_alone(thread, 0, 3); });
    turns.take(3, 1, [&] {
      thread.evict(0);
      EXPECT_EQ(thread.load(0), 3U);
      EXPECT_EQ(thread.load(4), 2U) << "sent again, it would be taken back";
    });
  });
}

// Thread 0 has sent its change, and gives notice of it after thread 1: the page of thread 1 would
// pass for one that has it.
TEST(ReleaseSteps, AChangeInANoticeOutOfTurnDropsThePage) {
  Shape shape = two_threads;
  shape.locks = 3;
  run_in_turns<CopiedToAll>(shape, [](auto& thread, auto& turns) {
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 0U); });
    turns.take(1, 0, [&] {
      thread.begin_span(0);
      thread.store(0, 1);
      thread.evict(0);
    });
    turns.take(2, 1, [&] {
      thread.begin_span(2);
      thread.store(4, 2);
      thread.end_span(2);
      thread.begin_span(2);
      EXPECT_EQ(thread.pages().lookup(0), nullptr);
      thread.end_span(2);
    });
    turns.take(3, 0, [&] { thread.end_span(0); });
    turns.take(4, 1, [&] {
      thread.begin_span(2);
      EXPECT_EQ(thread.load(0), 1U);
      EXPECT_EQ(thread.load(4), 2U);
      thread.end_span(2);
    });
  });
}

// Both notices are there when thread 2 reads, the later change's first.
TEST(ReleaseSteps, NoticesOfTwoChangesInAnyOrderPatchThePage) {
  Shape shape = two_threads;
  shape.threads = 3;
  shape.locks = 4;
  run_in_turns<CopiedToAll>(shape, [](auto& thread, auto& turns) {
    turns.take(0, 2, [&] { EXPECT_EQ(thread.load(0), 0U); });
    turns.take(1, 0, [&] {
      thread.begin_span(0);
      thread.store(0, 1);
      thread.evict(0);
    });
    turns.take(2, 1, [&] {
      thread.begin_span(2);
      thread.store(4, 2);
      thread.end_span(2);
    });
    turns.take(3, 0, [&] { thread.end_span(0); });
    turns.take(4, 2, [&] {
      thread.learn();
      const PageNote* const note = thread.pages().lookup(0);
      ASSERT_NE(note, nullptr) << "it is dropped";
      EXPECT_EQ(note->version, 2U);
      EXPECT_EQ(thread.load(0), 1U);
      EXPECT_EQ(thread.load(4), 2U);
    });
  });
}

TEST(ReleaseSteps, AChangeOutsideOfSpansIsInItsNotice) {
  run_in_turns<CopiedToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 0U); });
    turns.take(1, 0, [&] {
      thread.store(0, 1, false);
      thread.tell();
      EXPECT_TRUE(thread.pages().writable(0)) << "for the next store";
    });
    turns.take(2, 1, [&] {
      thread.learn();
      ASSERT_NE(thread.pages().lookup(0), nullptr);
      EXPECT_EQ(thread.load(0), 1U);
    });
    turns.take(3, 0, [&] {
      thread.store(0, 2, false);
      for (int times = 0; times < 40; ++times) thread.tell();
      EXPECT_FALSE(thread.pages().writable(0)) << "there was no store for long";
    });
    turns.take(4, 1, [&] {
      thread.learn();
      EXPECT_EQ(thread.load(0), 2U);
    });
  });
}

// The span goes on: its end would tell of the change, too.
TEST(ReleaseSteps, AChangeBeforeASpanIsInItsNoticeWhenTheSpanBegins) {
  run_in_turns<CopiedToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 0U); });
    turns.take(1, 0, [&] {
      thread.store(0, 1, false);
      thread.begin_span(0);
    });
    turns.take(2, 1, [&] {
      thread.begin_span(1);
      EXPECT_EQ(thread.load(0), 1U);
      thread.end_span(1);
    });
    turns.take(3, 0, [&] { thread.end_span(0); });
  });
}

// Its notice is given when the thread next tells, or at the barrier.
TEST(ReleaseSteps, AChangeOfAPageThatLeavesTheCacheIsTold) {
  run_in_turns<CopiedToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 0U); });
    turns.take(1, 0, [&] {
      thread.store(0, 1);
      thread.evict(0);
    });
    thread.barrier();
    EXPECT_EQ(thread.load(0), 1U);
    turns.take(2, 0, [&] {
      thread.store(0, 2);
      thread.evict(0);
      thread.tell();
    });
    turns.take(3, 1, [&] {
      thread.learn();
      EXPECT_EQ(thread.load(0), 2U);
    });
  });
}

// The later change is by the page's name, and would drop it.
TEST(ReleaseSteps, AChangeInANoticeThatThePageHasIsPassedOver) {
  run_in_turns<CopiedToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      count_alone(thread, 0, 1);
      thread.begin_span(0);
      for (const Variable v : {0, 4, 8}) thread.store(v, 2, false);
      thread.end_span(0);
    });
    turns.take(1, 1, [&] {
      EXPECT_EQ(thread.load(0), 2U);
      expect_patched(thread, 2);
      EXPECT_EQ(thread.load(0), 2U);
    });
  });
}

// Notices of the ring's eight places are overwritten by then.
TEST(ReleaseSteps, ChangesWhoseNoticesAreLostDropThePage) {
  run_in_turns<CopiedToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 0U); });
    turns.take(1, 0, [&] {
      for (std::uint64_t i = 1; i <= 9; ++i) count_alone(thread, 0, i);
    });
    turns.take(2, 1, [&] {
      thread.begin_span(1);
      EXPECT_EQ(thread.pages().lookup(0), nullptr);
      EXPECT_EQ(thread.load(0), 9U);
      thread.end_span(1);
    });
  });
}

// ---- Changes of the thread itself ---------------------------------------------------------------

// Thread 0 has stored to page 0 since it last told, and its page lacks an earlier change of thread
// 1: the notices of thread 0 are of versions behind that. `also`: more bytes than a notice holds.
constexpr Shape four_locks() {
  Shape shape = two_threads;
  shape.locks = 4;
  return shape;
}
template <class Thread>
void store_again(Thread& thread, bool also) {
  thread.store(0, 2, false);
  if (also) thread.store(12, 5, false);
}
template <class Thread>
void expect_last_stores(Thread& thread, bool also) {
  thread.begin_span(1);
  EXPECT_EQ(thread.load(0), 3U) << "the difference from an older value is sent";
  EXPECT_EQ(thread.load(4), 9U);
  EXPECT_EQ(thread.load(12), also ? 5U : 0U);
  thread.end_span(1);
}

TEST(ReleaseSteps, StoresBetweenTwoInnerSpansAreNotTakenBack) {
  run_in_turns<CopiedToAll>(four_locks(), [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      EXPECT_EQ(thread.load(0), 0U);
      thread.begin_span(0);
    });
    turns.take(1, 1, [&] { count_alone(thread, 4, 9); });
    turns.take(2, 0, [&] {
      thread.store(0, 1, false);
      thread.begin_span(2);
      thread.end_span(2);
      thread.store(0, 2, false);
      thread.begin_span(3);
      EXPECT_EQ(thread.load(0), 2U);
      thread.store(0, 3, false);
      thread.end_span(3);
      thread.end_span(0);
    });
    turns.take(3, 1, [&] { expect_last_stores(thread, false); });
  });
}

TEST(ReleaseSteps, StoresAfterAnInnerSpanAreNotTakenBack) {
  for (const bool also : {false, true})
    run_in_turns<CopiedToAll>(four_locks(), [also](auto& thread, auto& turns) {
      turns.take(0, 0, [&] {
        EXPECT_EQ(thread.load(0), 0U);
        thread.begin_span(0);
        thread.begin_span(2);
      });
      turns.take(1, 1, [&] { count_alone(thread, 4, 9); });
      turns.take(2, 0, [&] {
        thread.store(0, 1, false);
        thread.end_span(2);
        store_again(thread, also);
        thread.begin_span(3);
        EXPECT_EQ(thread.load(0), 2U);
        thread.store(0, 3, false);
        thread.end_span(3);
        thread.end_span(0);
      });
      turns.take(3, 1, [&] { expect_last_stores(thread, also); });
    });
}

// As those of a handler of a signal, in a thread that waits with a mutex.
TEST(ReleaseSteps, StoresBetweenTellingAndLearningAmidASpanAreNotTakenBack) {
  for (const bool also : {false, true})
    run_in_turns<CopiedToAll>(four_locks(), [also](auto& thread, auto& turns) {
      turns.take(0, 0, [&] {
        EXPECT_EQ(thread.load(0), 0U);
        thread.begin_span(0);
      });
      turns.take(1, 1, [&] { count_alone(thread, 4, 9); });
      turns.take(2, 0, [&] {
        thread.store(0, 1, false);
        thread.tell();
        store_again(thread, also);
        thread.learn();
        EXPECT_EQ(thread.load(0), 2U);
        thread.store(0, 3, false);
        thread.end_span(0);
      });
      turns.take(3, 1, [&] { expect_last_stores(thread, also); });
    });
}

// ---- Locks that are handed over -----------------------------------------------------------------

// More than a notice holds.
template <class Thread>
void store_two(Thread& thread, Variable first, std::uint64_t value) {
  thread.store(first, value, false);
  thread.store(first + 4, value + 1, false);
}
template <class Thread>
void expect_two(Thread& thread, Variable first, std::uint64_t value) {
  EXPECT_EQ(thread.load(first), value);
  EXPECT_EQ(thread.load(first + 4), value + 1);
}

TEST(ReleaseSteps, StoresBeforeALockIsHandedOverGoWithIt) {
  run_in_turns<CopiedToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 1, [&] {
      EXPECT_EQ(thread.load(0), 0U);
      thread.begin_span(0);
    });
    turns.take(1, 0, [&] {
      store_two(thread, 0, 1);
      EXPECT_FALSE(thread.try_hand_over(0)) << "another thread has it";
      EXPECT_EQ(thread.pages().lookup(0)->version, 0U) << "nothing is sent";
    });
    turns.take(2, 1, [&] { thread.end_span(0); });
    turns.take(3, 0, [&] { EXPECT_TRUE(thread.try_hand_over(0)); });
    turns.take(4, 1, [&] {
      thread.hand_over(0);
      ASSERT_NE(thread.pages().lookup(0), nullptr) << "the page is dropped";
      expect_two(thread, 0, 1);
      store_two(thread, 8, 3);
      thread.hand_over(0);
    });
    turns.take(5, 0, [&] {
      thread.hand_over(0);
      ASSERT_NE(thread.pages().lookup(0), nullptr) << "the page is dropped";
      expect_two(thread, 8, 3);
      store_two(thread, 0, 5);
      thread.tell();
      thread.hand_over(0);
    });
    turns.take(6, 1, [&] {
      thread.hand_over(0);
      EXPECT_EQ(thread.pages().lookup(0), nullptr) << "they were told before, by the page's name";
      expect_two(thread, 0, 5);
    });
  });
}

TEST(ReleaseSteps, StoresOfASpanGoWithALockThatIsHandedOverInIt) {
  run_in_turns<CopiedToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 0U); });
    turns.take(1, 0, [&] {
      thread.begin_span(1);
      store_two(thread, 0, 1);
      thread.hand_over(0);
    });
    turns.take(2, 1, [&] {
      thread.hand_over(0);
      ASSERT_NE(thread.pages().lookup(0), nullptr) << "the page is dropped";
      expect_two(thread, 0, 1);
    });
    turns.take(3, 0, [&] { thread.end_span(1); });
  });
}

// Though the log would hold them.
TEST(ReleaseSteps, ChangesOfMoreThanFourLinesGoByTheNameOfTheirPage) {
  Shape shape = two_threads;
  shape.page_bytes = 256;  // eight lines
  shape.updates = 16;
  for (const Variable lines : {4, 5})
    for (const bool in_a_span : {false, true})
      run_in_turns<CopiedToAll>(shape, [=](auto& thread, auto& turns) {
        turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 0U); });
        turns.take(1, 0, [&] {
          if (in_a_span) thread.begin_span(1);
          for (Variable line = 0; line < lines; ++line) thread.store(16 * line, line + 1, false);
          thread.hand_over(0);
        });
        turns.take(2, 1, [&] {
          thread.hand_over(0);
          EXPECT_EQ(thread.pages().lookup(0) != nullptr, lines == 4) << lines << in_a_span;
          for (Variable line = 0; line < lines; ++line) EXPECT_EQ(thread.load(16 * line), line + 1);
        });
        turns.take(3, 0, [&] {
          if (in_a_span) thread.end_span(1);
        });
      });
}

// The log of a lock holds four updates, and each of the pages 0 and 1 needs three.
TEST(ReleaseSteps, ChangesThatALogDoesNotHoldGoByTheNamesOfTheirPages) {
  run_in_turns<CopiedToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0) + thread.load(1), 0U); });
    turns.take(1, 0, [&] {
      for (const Variable v : {0, 16, 32, 1, 17, 33}) thread.store(v, v + 1, false);
      thread.hand_over(0);
    });
    turns.take(2, 1, [&] {
      thread.hand_over(0);
      EXPECT_NE(thread.pages().lookup(0), nullptr) << "the log has lost the first ones";
      EXPECT_EQ(thread.pages().lookup(1), nullptr);
      for (const Variable v : {0, 16, 32, 1, 17, 33}) EXPECT_EQ(thread.load(v), v + 1);
    });
  });
}

TEST(ReleaseSteps, ALockIsHandedOverAgainAndAgain) {
  run_in_turns<CopiedToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 0U); });
    for (int turn = 1; turn <= 12; ++turn) {
      turns.take(turn, turn % 2 == 0 ? 1 : 0, [&] {
        const auto number = static_cast<std::uint64_t>(turn);
        thread.hand_over(0);
        if (turn > 1) {
          ASSERT_NE(thread.pages().lookup(0), nullptr) << "the page is dropped, turn " << turn;
          expect_two(thread, turn % 2 == 0 ? 0 : 8, number - 1);
        }
        store_two(thread, turn % 2 == 0 ? 8 : 0, number);
        thread.hand_over(0);
      });
    }
  });
}

// Of a page of 16 lines five before a hand-over, and nine in a span, are too many for the log.
TEST(ReleaseSteps, ChangesOfManyLinesGoByTheNameOfTheirPage) {
  Shape shape = two_threads;
  shape.page_bytes = 512;
  shape.updates = 16;
  run_in_turns<CopiedToAll>(shape, [](auto& thread, auto& turns) {
    const auto store_lines = [&](Variable lines, std::uint64_t value) {
      for (Variable line = 0; line < lines; ++line) thread.store(16 * line, value, false);
    };
    const auto expect_lines = [&](bool patched, Variable lines, std::uint64_t value) {
      thread.hand_over(0);
      EXPECT_EQ(thread.pages().lookup(0) != nullptr, patched);
      for (Variable line = 0; line < lines; ++line) EXPECT_EQ(thread.load(16 * line), value);
    };
    const auto in_a_span = [&](Variable lines, std::uint64_t value) {
      thread.begin_span(0);
      store_lines(lines, value);
      thread.end_span(0);
    };
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 0U); });
    turns.take(1, 0, [&] { store_lines(4, 1), thread.hand_over(0); });
    turns.take(2, 1, [&] { expect_lines(true, 4, 1); });
    turns.take(3, 0, [&] { store_lines(5, 2), thread.hand_over(0); });
    turns.take(4, 1, [&] { expect_lines(false, 5, 2); });
    turns.take(5, 0, [&] { in_a_span(8, 3); });
    turns.take(6, 1, [&] { expect_lines(true, 8, 3); });
    turns.take(7, 0, [&] { in_a_span(9, 4); });
    turns.take(8, 1, [&] { expect_lines(false, 9, 4); });
  });
}

// Thread 2 has the page of before both changes, and the log of its lock only the second one (DRL3).
TEST(ReleaseSteps, AGapBeforeAChangeThatWasHandedOverDropsThePage) {
  Shape shape = two_threads;
  shape.threads = 3;
  run_in_turns<CopiedToAll>(shape, [](auto& thread, auto& turns) {
    turns.take(0, 2, [&] { EXPECT_EQ(thread.load(0), 0U); });
    turns.take(1, 0, [&] {
      store_two(thread, 0, 1);
      thread.hand_over(0);
    });
    turns.take(2, 1, [&] {
      thread.hand_over(0);
      store_two(thread, 8, 3);
      thread.hand_over(1);
    });
    turns.take(3, 2, [&] {
      thread.hand_over(1);
      expect_two(thread, 0, 1);
      expect_two(thread, 8, 3);
    });
  });
}

// More hand-overs than the log of the lock holds, before the other thread looks.
TEST(ReleaseSteps, ALogThatHasLostChangesHasNoticesOfThem) {
  run_in_turns<CopiedToAll>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0) + thread.load(1), 0U); });
    turns.take(1, 0, [&] {
      for (std::uint64_t round = 1; round <= 6; ++round) {
        store_two(thread, 0, round);
        thread.hand_over(0);
      }
    });
    turns.take(2, 1, [&] {
      thread.hand_over(0);
      expect_two(thread, 0, 6);
      EXPECT_NE(thread.pages().lookup(1), nullptr);
    });
  });
}

}  // namespace
}  // namespace tombolo::dsm::testing
