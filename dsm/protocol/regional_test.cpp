// SPDX-License-Identifier: Apache-2.0
// Purpose: programs whose threads act in turns (dsm/testing/turns.h): twins under updates, pages
// that a keeper has, and readers that it must find before its stores count.
// Thread safety: -
#include "dsm/protocol/regional.h"

#include <gtest/gtest.h>

#include "dsm/testing/turns.h"

namespace tombolo::dsm::testing {
namespace {

// ---- Twins --------------------------------------------------------------------------------------

// Thread 0's page stays writable after its span, with a twin.
TEST(RegionalSteps, AnUpdateGoesIntoTheTwinToo) {
  run_in_turns<Copied>(two_threads, [](auto& thread, auto& turns) {
    const auto count = [&](Variable v, std::uint64_t value) {
      thread.begin_span(0);
      thread.store(v, value);
      thread.end_span(0);
    };
    turns.take(0, 0, [&] { count(0, 1); });
    turns.take(1, 1, [&] { count(4, 2); });
    turns.take(2, 0, [&] { count(0, 3); });
    turns.take(3, 1, [&] {
      thread.evict(0);
      EXPECT_EQ(thread.load(0), 3U);
      EXPECT_EQ(thread.load(4), 2U) << "sent again, it would be taken back";
    });
  });
}

TEST(RegionalSteps, ATwinIsRenewedWhereThePageStaysWritable) {
  run_in_turns<Copied>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      for (const std::uint64_t value : {1, 2}) {
        thread.begin_span(0);
        thread.store(0, value);
        thread.end_span(0);
      }
      thread.evict(0);
      EXPECT_EQ(thread.load(0), 2U);
    });
  });
}

// A page whose stores were sent before a span is closed: were it left open with its old twin, the
// first difference would be sent again, which takes it back.
TEST(RegionalSteps, APageIsClosedWhenItsStoresAreSent) {
  run_in_turns<Copied>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      for (const std::uint64_t value : {1, 2}) {
        thread.store(0, value);
        thread.begin_span(0);
        EXPECT_FALSE(thread.pages().writable(0));
        thread.end_span(0);
      }
      thread.evict(0);
      EXPECT_EQ(thread.load(0), 2U);
    });
  });
}

// ---- Updates ------------------------------------------------------------------------------------

// Each of them is the version after the one before: the page stays, and is as new as its lock.
TEST(RegionalSteps, UpdatesArePutIntoThePageInTurn) {
  run_in_turns<Copied>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 0U); });
    for (const int round : {1, 2}) {
      turns.take(2 * round - 1, 0, [&] {
        thread.begin_span(0);
        thread.store(0, static_cast<std::uint64_t>(round));
        thread.end_span(0);
      });
      turns.take(2 * round, 1, [&] {
        thread.begin_span(0);
        const PageNote* const note = thread.pages().lookup(0);
        ASSERT_NE(note, nullptr) << "round " << round;
        EXPECT_EQ(note->version, static_cast<std::uint64_t>(round));
        EXPECT_EQ(thread.load(0), static_cast<std::uint64_t>(round));
        thread.end_span(0);
      });
    }
  });
}

// Here a change without its bytes, which would drop the page.
TEST(RegionalSteps, AnUpdateThatThePageHasIsPassedOver) {
  run_in_turns<Copied>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      thread.begin_span(0);
      thread.store(0, 1, false);
      thread.end_span(0);
    });
    turns.take(1, 1, [&] {
      EXPECT_EQ(thread.load(0), 1U);
      thread.begin_span(0);
      EXPECT_NE(thread.pages().lookup(0), nullptr);
      thread.end_span(0);
    });
  });
}

// ---- Some of the threads ------------------------------------------------------------------------

template <class Case>
void expect_told_stores_to_be_seen() {
  run_in_turns<Case>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 1, [&] {
      EXPECT_EQ(thread.load(0), 0U);
      EXPECT_EQ(thread.load(1), 0U);
    });
    turns.take(1, 0, [&] {
      thread.begin_span(0);
      thread.store(0, 1);
      thread.end_span(0);
      thread.store(1, 2);
      thread.tell();
    });
    turns.take(2, 1, [&] {
      thread.learn();
      EXPECT_EQ(thread.load(0), 1U) << "in a span";
      EXPECT_EQ(thread.load(1), 2U) << "outside of spans";
    });
  });
}
TEST(RegionalSteps, AThreadThatLearnsSeesWhatWasTold) { expect_told_stores_to_be_seen<Copied>(); }
TEST(RegionalSteps, InPlaceAThreadThatLearnsSeesWhatWasTold) {
  expect_told_stores_to_be_seen<InPlace>();
}

// As those of a handler of a signal, in the thread that waits.
TEST(RegionalSteps, StoresBetweenTellingAndLearningAreNotLost) {
  run_in_turns<Copied>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      thread.store(0, 1);
      thread.tell();
    });
    turns.take(1, 1, [&] {
      thread.store(4, 2);
      thread.tell();
    });
    turns.take(2, 0, [&] {
      thread.store(0, 3);
      thread.learn();
      EXPECT_EQ(thread.load(0), 3U);
      EXPECT_EQ(thread.load(4), 2U);
    });
  });
}

// ---- Kept pages ---------------------------------------------------------------------------------

// Its own part and that of the home would both have it.
template <class Case>
void expect_no_update_of_a_kept_page() {
  run_in_turns<Case>(two_threads, [](auto& thread, auto& turns) {
    if (thread.self() == 0) thread.store(0, 1);
    thread.barrier();
    turns.take(0, 1, [&] {
      thread.begin_span(0);
      thread.store(4, 2);
      thread.end_span(0);
    });
    turns.take(1, 0, [&] {
      thread.begin_span(0);
      EXPECT_EQ(thread.load(4), 2U);
      thread.store(0, 3);
      thread.end_span(0);
    });
    turns.take(2, 1, [&] {
      thread.evict(0);
      thread.begin_span(0);
      EXPECT_EQ(thread.load(0), 3U);
      EXPECT_EQ(thread.load(4), 2U);
      thread.end_span(0);
    });
  });
}
TEST(RegionalSteps, AKeptPageTakesNoUpdates) { expect_no_update_of_a_kept_page<Copied>(); }
TEST(RegionalSteps, AKeptPageInPlaceTakesNoUpdates) { expect_no_update_of_a_kept_page<InPlace>(); }
TEST(ReleaseSteps, AKeptPageTakesNoChangeOfANotice) {
  expect_no_update_of_a_kept_page<CopiedToAll>();
}

// ---- Pages that are kept outside of barriers, in place ------------------------------------------

TEST(RegionalSteps, APageThatAThreadChangesAgainIsKept) {
  run_in_turns<InPlace>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      store_and_send(thread, 0, 1);
      EXPECT_FALSE(keeps(thread, 0)) << "it may be another thread's the next time";
      store_and_send(thread, 0, 2);
      EXPECT_TRUE(keeps(thread, 0));
      thread.store(0, 3);
    });
    turns.take(1, 1, [&] { EXPECT_EQ(thread.load(0), 3U) << "it is where others get it"; });
  });
}

TEST(RegionalSteps, APageThatIsNotInPlaceIsSentAgain) {
  run_in_turns<Copied>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      for (const std::uint64_t value : {1, 2, 3}) store_and_send(thread, 0, value);
      EXPECT_FALSE(keeps(thread, 0));
    });
  });
}

// There may be such stores again, each of which would be met.
TEST(RegionalSteps, APageThatIsStoredToWithItsOwnContentsIsKept) {
  run_in_turns<InPlace>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] {
      store_and_send(thread, 0, 0);
      EXPECT_FALSE(keeps(thread, 0));
      store_and_send(thread, 0, 0);
      EXPECT_TRUE(keeps(thread, 0));
    });
  });
}

// Its copy lacks the change, and is dropped or patched before the next store.
template <class Case>
void expect_changed_by_both() {
  run_in_turns<Case>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] { store_and_send(thread, 0, 1); });
    turns.take(1, 1, [&] {
      if (Case::Thread::tells_all) return count_alone(thread, 4, 2);
      store_and_send(thread, 4, 2);
    });
    turns.take(2, 0, [&] {
      thread.learn();
      store_and_send(thread, 0, 3);
      EXPECT_FALSE(keeps(thread, 0));
      EXPECT_EQ(thread.load(4), 2U);
      store_and_send(thread, 0, 4);
      EXPECT_TRUE(keeps(thread, 0));
    });
    turns.take(3, 1, [&] {
      thread.learn();
      EXPECT_EQ(thread.load(0), 4U);
      EXPECT_EQ(thread.load(4), 2U);
    });
  });
}
TEST(RegionalSteps, APageThatAnotherChangesBetweenIsNotKept) { expect_changed_by_both<InPlace>(); }
TEST(ReleaseSteps, APageThatAnotherPatchesBetweenIsNotKept) {
  expect_changed_by_both<InPlaceToAll>();
}

// Both send at once: thread 0 has yet to learn of the other's change.
TEST(RegionalSteps, APageWithAChangeThatIsNotKnownYetIsNotKept) {
  run_in_turns<InPlace>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 1, [&] { thread.store(4, 2); });
    turns.take(1, 0, [&] {
      thread.store(0, 1);
      thread.tell();
    });
    turns.take(2, 1, [&] { thread.tell(); });
    turns.take(3, 0, [&] {
      thread.store(0, 3);
      thread.tell();
      EXPECT_FALSE(keeps(thread, 0));
    });
    turns.take(4, 1, [&] {
      thread.learn();
      EXPECT_EQ(thread.load(0), 3U);
      EXPECT_EQ(thread.load(4), 2U);
    });
  });
}

TEST(RegionalSteps, CopiesOfAPageThatBeginsToBeKeptAreDropped) {
  run_in_turns<InPlace>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] { store_and_send(thread, 0, 1); });
    turns.take(1, 1, [&] { EXPECT_EQ(thread.load(0), 1U); });
    turns.take(2, 0, [&] { store_and_send(thread, 0, 2); });
    turns.take(3, 1, [&] {
      thread.begin_span(1);
      EXPECT_EQ(thread.load(0), 2U);
      thread.end_span(1);
    });
  });
}

// ---- Readers of pages that are left to their programs -------------------------------------------

// Thread 1 gets page 0, and thread 0 finds that.
template <class Thread, class Turns>
void get_and_find(Thread& thread, Turns& turns, int turn) {
  turns.take(turn, 1, [&] {
    thread.learn();
    thread.load(0);
  });
  turns.take(turn + 1, 0, [&] { thread.tell(); });
}
// From here on page 0 is closed, and thread 0 has looked for readers some times since.
template <class Thread, class Turns>
void close_first_page(Thread& thread, Turns& turns) {
  turns.take(0, 0, [&] { keep_by_stores(thread); });
  get_and_find(thread, turns, 1);
  turns.take(3, 0, [&] {
    ASSERT_FALSE(thread.pages().writable(0));
    for (int i = 0; i < 3; ++i) thread.tell();
  });
}

template <class Thread>
void expect_first_page_open(Thread& thread, bool open) {
  if (thread.self() != 0) return;
  EXPECT_EQ(thread.pages().writable(0), open);
}

TEST(RegionalSteps, AClosedPageThatIsStoredToBeforeItIsGotStaysOpenForLonger) {
  run_in_turns<InPlace>(two_threads, [](auto& thread, auto& turns) {
    close_first_page(thread, turns);
    turns.take(4, 0, [&] { thread.store(0, 9); });
    for (const int turn : {5, 7}) {
      get_and_find(thread, turns, turn);
      expect_first_page_open(thread, true);
    }
    get_and_find(thread, turns, 9);
    expect_first_page_open(thread, false);
  });
}

TEST(RegionalSteps, AClosedPageThatIsGotBeforeItIsStoredToIsClosedAgain) {
  run_in_turns<InPlace>(two_threads, [](auto& thread, auto& turns) {
    close_first_page(thread, turns);
    get_and_find(thread, turns, 4);
    turns.take(6, 0, [&] {
      for (int i = 0; i < 3; ++i) thread.tell();
      thread.store(0, 9);
      thread.tell();
    });
    get_and_find(thread, turns, 7);
    expect_first_page_open(thread, false);
  });
}

TEST(RegionalSteps, AClosedPageThatIsGotAndStoredToSoonStaysOpenForLonger) {
  run_in_turns<InPlace>(two_threads, [](auto& thread, auto& turns) {
    turns.take(0, 0, [&] { keep_by_stores(thread); });
    get_and_find(thread, turns, 1);
    expect_first_page_open(thread, false);
    get_and_find(thread, turns, 3);
    turns.take(5, 0, [&] { thread.store(0, 9); });
    for (const int turn : {6, 8}) {
      get_and_find(thread, turns, turn);
      expect_first_page_open(thread, true);
    }
    get_and_find(thread, turns, 10);
    expect_first_page_open(thread, false);
  });
}

// From here on thread 0 keeps page 0, which is left to its program: no store to it is met.
template <class Thread>
void keep_first_page(Thread& thread) {
  if (thread.self() == 0) thread.store(0, 1);
  thread.barrier();
}

TEST(RegionalSteps, AReaderIsFoundAtABarrier) {
  run_in_turns<InPlace>(two_threads, [](auto& thread, auto& turns) {
    keep_first_page(thread);
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 1U); });
    turns.take(1, 0, [&] { thread.store(0, 2); });
    thread.barrier();
    EXPECT_EQ(thread.load(0), 2U);
  });
}

TEST(RegionalSteps, AReaderIsFoundBeforeASpan) {
  run_in_turns<InPlace>(two_threads, [](auto& thread, auto& turns) {
    keep_first_page(thread);
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 1U); });
    turns.take(1, 0, [&] {
      thread.store(0, 2);
      thread.begin_span(0);
    });
    turns.take(2, 1, [&] {
      thread.begin_span(1);
      EXPECT_EQ(thread.load(0), 2U) << "stored before a span of another lock";
      thread.end_span(1);
    });
    turns.take(3, 0, [&] { thread.end_span(0); });
  });
}

TEST(RegionalSteps, AReaderIsFoundAtTheEndOfASpan) {
  run_in_turns<InPlace>(two_threads, [](auto& thread, auto& turns) {
    keep_first_page(thread);
    turns.take(0, 0, [&] { thread.begin_span(0); });
    turns.take(1, 1, [&] { EXPECT_EQ(thread.load(0), 1U); });
    turns.take(2, 0, [&] {
      thread.store(0, 2);
      thread.end_span(0);
    });
    turns.take(3, 1, [&] {
      thread.begin_span(0);
      EXPECT_EQ(thread.load(0), 2U);
      thread.end_span(0);
    });
  });
}

// The twin of the first barrier has that value, too.
TEST(RegionalSteps, AFormerValueInASpanIsAChange) {
  run_in_turns<InPlace>(two_threads, [](auto& thread, auto& turns) {
    keep_first_page(thread);
    turns.take(0, 0, [&] { thread.begin_span(0); });
    turns.take(1, 1, [&] { EXPECT_EQ(thread.load(0), 1U); });
    turns.take(2, 0, [&] {
      thread.store(0, 0);
      thread.end_span(0);
    });
    turns.take(3, 1, [&] {
      thread.begin_span(0);
      EXPECT_EQ(thread.load(0), 0U);
      thread.end_span(0);
    });
  });
}

TEST(RegionalSteps, AReaderOfAPageThatLeavesTheCacheIsTold) {
  run_in_turns<InPlace>(two_threads, [](auto& thread, auto& turns) {
    keep_first_page(thread);
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 1U); });
    turns.take(1, 0, [&] {
      thread.store(0, 2);
      thread.evict(0);
    });
    thread.barrier();
    EXPECT_EQ(thread.load(0), 2U);
  });
}

// The page is closed to stores when its reader comes: the next store is met.
TEST(RegionalSteps, AReaderOfAClosedPageIsKeptInMind) {
  run_in_turns<InPlace>(two_threads, [](auto& thread, auto& turns) {
    keep_first_page(thread);
    turns.take(0, 1, [&] { EXPECT_EQ(thread.load(0), 1U); });
    turns.take(1, 0, [] {});
    thread.barrier();  // the page is closed
    turns.take(2, 1, [&] { EXPECT_EQ(thread.load(0), 1U); });
    turns.take(3, 0, [&] {
      EXPECT_FALSE(thread.pages().writable(0));
      thread.begin_span(0);  // finds the reader
      thread.end_span(0);
      thread.store(0, 3);
    });
    thread.barrier();
    EXPECT_EQ(thread.load(0), 3U);
  });
}

// More readers than the ring of notices holds.
TEST(RegionalSteps, ReadersAreFoundWhereTheirNoticesAreLost) {
  Shape shape = two_threads;
  shape.pages = 8;
  shape.cached_pages = 8;
  shape.notices = 2;
  run_in_turns<InPlace>(shape, [](auto& thread, auto& turns) {
    const auto store_all = [&](std::uint64_t value) {
      for (Variable v = 0; v < 8; ++v) thread.store(v, value);
    };
    const auto expect_all = [&](std::uint64_t value) {
      for (Variable v = 0; v < 8; ++v) EXPECT_EQ(thread.load(v), value) << v;
    };
    if (thread.self() == 0) store_all(1);
    thread.barrier();
    turns.take(0, 1, [&] { expect_all(1); });
    turns.take(1, 0, [&] { store_all(2); });
    thread.barrier();
    expect_all(2);
  });
}

}  // namespace
}  // namespace tombolo::dsm::testing
