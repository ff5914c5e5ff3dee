// SPDX-License-Identifier: Apache-2.0
// Purpose: the promises of all protocols on every machine, one by one: which stores a thread sees
// after a barrier, in a span and after one, and through evictions, where pages are shared by
// several threads.
// Thread safety: -
#include <gtest/gtest.h>

#include <atomic>

#include "dsm/protocol/regional.h"
#include "dsm/protocol/sequential.h"
#include "dsm/testing/deferring.h"
#include "dsm/testing/machines.h"
#include "dsm/testing/private_pages.h"
#include "dsm/testing/program_thread.h"
#include "dsm/transport/core_transport.h"

namespace tombolo::dsm::testing {
namespace {

constexpr Shape small{.threads = 3,
                      .pages = 4,
                      .page_bytes = 128,
                      .cached_pages = 2,
                      .locks = 2,
                      .notices = 8,
                      .updates = 4};

template <class Case>
class Protocols : public ::testing::Test {
 protected:
  using Thread = typename Case::Thread;
};
TYPED_TEST_SUITE(Protocols, Cases, CaseNames);

template <class Case>
class ProtocolsThatTellAll : public ::testing::Test {};
TYPED_TEST_SUITE(ProtocolsThatTellAll, CasesThatTellAll, CaseNames);

TYPED_TEST(Protocols, ABarrierShowsAllStores) {
  run<TypeParam>(small, 1, [](auto& thread) {
    for (std::uint64_t round = 1; round <= 4; ++round) {
      // All pages are shared by all threads; each stores to a variable of its own on each.
      for (Variable v = 0; v < 12; ++v)
        if (v / 4 == thread.self()) thread.store(v, round * 100 + v);
      thread.barrier();
      for (Variable v = 0; v < 12; ++v) EXPECT_EQ(thread.load(v), round * 100 + v);
      thread.barrier();
    }
    thread.close();
  });
}

TYPED_TEST(Protocols, ASpanShowsTheStoresOfEarlierOnes) {
  constexpr std::uint64_t times = 20;
  run<TypeParam>(small, 2, [](auto& thread) {
    for (std::uint64_t i = 0; i < times; ++i) {
      thread.begin_span(1);
      // Recorded and not, on two pages.
      thread.store(1, thread.load(1) + 1);
      thread.store(2, thread.load(2) + 1, false);
      thread.end_span(1);
    }
    thread.barrier();
    EXPECT_EQ(thread.load(1), times * thread.shape().threads);
    EXPECT_EQ(thread.load(2), times * thread.shape().threads);
    thread.close();
  });
}

TYPED_TEST(ProtocolsThatTellAll, ShowTheStoresOfASpanInSpansOfOtherLocks) {
  run<TypeParam>(small, 4, [](auto& thread) {
    for (std::uint64_t round = 1; round <= 10; ++round) {
      // Cached by all, and older than the stores.
      EXPECT_EQ(thread.load(1), round - 1);
      EXPECT_EQ(thread.load(5), round - 1);
      thread.sum(0);
      if (round % thread.shape().threads == thread.self()) {
        thread.begin_span(0);
        thread.store(1, round);         // recorded
        thread.store(5, round, false);  // and not
        thread.end_span(0);
      }
      thread.sum(0);
      thread.begin_span(1);
      EXPECT_EQ(thread.load(1), round);
      EXPECT_EQ(thread.load(5), round);
      thread.end_span(1);
      thread.sum(0);
    }
    thread.barrier();
    thread.close();
  });
}

// The next holder's page is patched; the holder of another lock gets the page again, but for a
// change that is in its notice. `recorded`: variables of page 1, each of 16 bytes; `updates`: that
// the log has room for.
template <class Case>
void expect_patched(std::uint64_t recorded, bool all_recorded, bool patched,
                    std::uint32_t updates = small.updates) {
  Shape shape = small;
  shape.updates = updates;
  run<Case>(shape, 15, [=](auto& thread) {
    EXPECT_EQ(thread.load(1), 0u);
    thread.sum(0);
    if (thread.self() == 0) {
      thread.begin_span(0);
      for (int times = 0; times < 3; ++times)
        for (std::uint64_t i = 0; i < recorded; ++i) thread.store(1 + 8 * i, 7 + i);
      if (!all_recorded) thread.store(1 + 4, 5, false);
      thread.end_span(0);
    }
    thread.sum(0);
    if (thread.self() != 0) {
      const Lock lock = thread.self() - 1;
      thread.begin_span(lock);
      const bool in_notice = recorded == 1 && all_recorded;
      const bool kept = in_notice || (patched && lock == 0);
      EXPECT_TRUE(Case::Protocol::polls || (thread.pages().lookup(1) != nullptr) == kept)
          << "lock " << lock;
      for (std::uint64_t i = 0; i < recorded; ++i) EXPECT_EQ(thread.load(1 + 8 * i), 7 + i);
      EXPECT_EQ(thread.load(1 + 4), all_recorded ? 0u : 5u);
      thread.end_span(lock);
    }
    thread.barrier();
    thread.close();
  });
}

// Two of these variables are in one update.
TYPED_TEST(ProtocolsThatTellAll, PatchThePageByTheStoresOfASpan) {
  expect_patched<TypeParam>(1, true, true);
  expect_patched<TypeParam>(1, false, true);
  expect_patched<TypeParam>(4, true, true, 2);
  expect_patched<TypeParam>(2, false, true, 1);
}

TYPED_TEST(ProtocolsThatTellAll, FetchAPageAgainWhereNotAllOfItsStoresAreInTheLog) {
  expect_patched<TypeParam>(3, true, false, 1);
  expect_patched<TypeParam>(5, false, false, 2);
}

TYPED_TEST(Protocols, SpansMayBeNestedAndEndInAnyOrder) {
  constexpr std::uint64_t times = 10;
  run<TypeParam>(small, 3, [](auto& thread) {
    for (std::uint64_t i = 0; i < times; ++i) {
      thread.begin_span(0);
      thread.store(0, thread.load(0) + 1);
      thread.begin_span(1);
      thread.store(4, thread.load(4) + 1);
      thread.end_span(0);
      thread.store(5, thread.load(5) + 1);
      thread.end_span(1);
    }
    thread.barrier();
    for (const Variable v : {0, 4, 5}) EXPECT_EQ(thread.load(v), times * thread.shape().threads);
    thread.close();
  });
}

// A thread that holds the lock has it to itself; the others find it taken, and their stores stay
// theirs to send.
TYPED_TEST(Protocols, ASpanMayBeTried) {
  run<TypeParam>(small, 7, [](auto& thread) {
    const auto meet = [&] { thread.sum(0); };
    if (thread.self() == 0) {
      EXPECT_TRUE(thread.try_begin_span(1));
      thread.store(1, 7);
    }
    meet();
    if (thread.self() != 0) {
      EXPECT_FALSE(thread.try_begin_span(1));
      EXPECT_TRUE(thread.self() != 1 || thread.try_begin_span(0)) << "another lock";
      if (thread.self() == 1) thread.end_span(0);
      EXPECT_FALSE(thread.try_begin_span(1));
    }
    meet();
    if (thread.self() == 0) thread.end_span(1);
    meet();
    if (thread.self() == 2) {
      thread.store(4, 9);
      EXPECT_TRUE(thread.try_begin_span(1));
      EXPECT_EQ(thread.load(1), 7u) << "of the span before";
      thread.store(1, 8);
      thread.end_span(1);
    }
    meet();
    if (thread.self() == 1) {
      EXPECT_TRUE(thread.try_begin_span(1));
      EXPECT_EQ(thread.load(1), 8u);
      EXPECT_EQ(thread.load(4), 9u) << "stored before a span";
      thread.end_span(1);
    }
    thread.barrier();
    thread.close();
  });
}

// Until the test has come to that step.
template <class Thread>
void await(Thread& thread, const std::atomic<int>& step, int wanted) {
  while (step < wanted) {
    thread.must(thread.protocol().poll());
    thread.must(thread.core().pause(1000));
  }
}

// Rule 3 for those that take part: stores outside of spans, in spans, recorded and not.
TYPED_TEST(Protocols, SomeThreadsMeetWhileOthersDoNot) {
  std::atomic<int> step = 0;
  std::atomic<std::uint64_t> told = 0;
  run<TypeParam>(small, 8, [&](auto& thread) {
    for (std::uint64_t round = 1; round <= 5; ++round) {
      if (thread.self() == 2) break;                         // it computes
      for (const Variable v : {0, 1, 2, 4}) thread.load(v);  // old from now on
      if (thread.self() == 0) {
        thread.store(0, round);
        thread.begin_span(0);
        thread.store(1, round);
        thread.store(2, round, false);
        thread.end_span(0);
      } else {
        thread.store(4, round);  // beside the first one
      }
      const auto meet = [&](std::uint64_t number) {
        thread.tell();
        ++told;
        while (told < 2 * number) {
          thread.must(thread.protocol().poll());
          thread.pause(5000);
        }
        thread.learn();
      };
      meet(2 * round - 1);
      for (const Variable v : {0, 1, 2, 4}) EXPECT_EQ(thread.load(v), round) << v;
      meet(2 * round);
    }
    if (thread.self() != 2) ++step;
    await(thread, step, 2);
    thread.barrier();
    for (const Variable v : {0, 1, 2, 4}) EXPECT_EQ(thread.load(v), 5U) << v;
    thread.close();
  });
}

// Rule 1 of regional consistency.
TYPED_TEST(Protocols, ASpanShowsStoresFromBeforeAnEarlierSpanOfAnyLock) {
  std::atomic<int> step = 0;
  run<TypeParam>(small, 7, [&](auto& thread) {
    if (thread.self() == 1) {
      EXPECT_EQ(thread.load(0), 0U) << "its copy is old from now on";
      step = 1;
      await(thread, step, 2);
      thread.begin_span(0);
      EXPECT_EQ(thread.load(0), 5U);
      thread.end_span(0);
    } else if (thread.self() == 0) {
      await(thread, step, 1);
      thread.store(0, 5);
      thread.begin_span(1);
      thread.end_span(1);
      step = 2;
    }
    thread.barrier();
    thread.close();
  });
}

// A transport that looks whether a page is locked that is put or exposed.
template <Transport T>
class WatchedPages : public T {
 public:
  using T::T;
  static inline machine::Offset words = 0;  // of the directory
  static inline std::atomic<int> puts = 0;
  static inline std::atomic<int> exposed = 0;
  Status put(Page page, std::span<const std::byte> in) {
    EXPECT_TRUE(locked(page)) << "page " << page;
    ++puts;
    return T::put(page, in);
  }
  Status expose(std::uint32_t slot, std::span<const std::byte> in) {
    bool any = false;
    for (Page page = 0; page < T::shape().pages; ++page) any = any || locked(page);
    EXPECT_TRUE(any) << "slot " << slot;
    ++exposed;
    return T::expose(slot, in);
  }

 private:
  bool locked(Page page) {
    const Shape& shape = T::shape();
    const auto mutex =
        T::core().word({shape.home_of(page), words + (shape.place_of(page) * 4 + 2) * 8});
    return T::core().load(mutex) != 0;
  }
};

using Watch = WatchedPages<CoreTransport<coherent::Core>>;
struct Watched {
  using Machine = coherent::Core;
  using Thread = ProgramThread<Watch, PrivatePages, Regional>;
};

// Otherwise a thread could get one part of a kept page from before a change, and one from after it;
// or read an exposed page while its keeper writes it.
TEST(RegionalPages, AreLockedWhereTheyAreExposedOrBroughtHome) {
  Watch::words = Watched::Thread::take(small).protocol.directory.words;
  run<Watched>(small, 8, [](auto& thread) {
    if (thread.self() == 0) thread.store(0, 1);
    thread.barrier();  // thread 0 keeps the page
    EXPECT_EQ(Watch::exposed, 1);
    EXPECT_EQ(Watch::puts, 0);
    thread.barrier();
    if (thread.self() == 1) {
      thread.begin_span(0);
      thread.store(4, 2);
      thread.end_span(0);
      EXPECT_EQ(Watch::puts, 1) << "a difference beside the keeper";
    }
    thread.barrier();
    thread.barrier();
    if (thread.self() == 0) thread.store(8, 3);
    thread.barrier();
    thread.barrier();
    const int before = Watch::puts;
    thread.barrier();
    if (thread.self() == 0) {
      thread.evict(0);
      EXPECT_EQ(Watch::puts, before + 1) << "a kept page";
    }
    thread.barrier();
    EXPECT_EQ(thread.load(0), 1U);
    EXPECT_EQ(thread.load(4), 2U);
    EXPECT_EQ(thread.load(8), 3U);
    thread.close();
  });
}

// ---- Pages in place -----------------------------------------------------------------------------

using InPlace = Case<coherent::Core, Regional, ExposedPages>;

// Asks a thread whether a store to that page would be met.
template <class Thread>
bool is_met(Thread& thread, Page page) {
  return thread.pages().lookup(page) == nullptr || !thread.pages().writable(page);
}

TEST(PagesInPlace, AreLeftToTheOneThreadThatWritesThem) {
  run<InPlace>(small, 11, [](auto& thread) {
    if (thread.self() == 0) thread.store(0, 1);
    // The contents that it has already: it may be written often.
    if (thread.self() == 1) thread.store(1, 0);
    thread.barrier();
    for (int i = 0; i < 40; ++i) {
      if (thread.self() < 2) {
        EXPECT_FALSE(is_met(thread, thread.self())) << "barrier " << i;
        EXPECT_TRUE(thread.pages().written().empty());
      }
      thread.barrier();
    }
    thread.begin_span(0);
    if (thread.self() == 0) {
      EXPECT_FALSE(is_met(thread, 0)) << "in a span";
    }
    thread.end_span(0);
    thread.barrier();
    thread.close();
  });
}

// It costs the readers no copy after the first one that is too old.
TEST(PagesInPlace, AreReadWithoutEndOnceTheirWriterHasStopped) {
  run<InPlace>(small, 12, [](auto& thread) {
    if (thread.self() == 0) thread.store(0, 1);
    int dropped = 0;
    for (int i = 0; i < 40; ++i) {
      thread.barrier();
      if (thread.self() == 0) continue;
      dropped += thread.pages().lookup(0) == nullptr ? 1 : 0;
      EXPECT_EQ(thread.load(0), 1U);
    }
    EXPECT_LE(dropped, 2);
    thread.barrier();
    thread.close();
  });
}

// A page that is written and read all the time meets few stores; one that was, and is read now, is
// soon closed to stores again.
TEST(PagesInPlace, AreLeftForLongerWhereStoresGoOn) {
  run<InPlace>(small, 14, [](auto& thread) {
    int met = 0;
    for (std::uint64_t i = 1; i <= 100; ++i) {
      if (thread.self() == 0) {
        met += is_met(thread, 0) ? 1 : 0;
        thread.store(0, i);
      }
      thread.barrier();
      EXPECT_EQ(thread.load(0), i);
      thread.barrier();
    }
    EXPECT_LE(met, 12) << "of 100";
    int dropped = 0;
    for (int i = 0; i < 60; ++i) {
      dropped += thread.pages().lookup(0) == nullptr ? 1 : 0;
      EXPECT_EQ(thread.load(0), 100U);
      thread.barrier();
    }
    EXPECT_LE(dropped, 17);
    if (thread.self() == 0) {
      EXPECT_TRUE(is_met(thread, 0));
    }
    thread.barrier();
    thread.close();
  });
}

// Stores that no fault tells of are found, again and again.
TEST(PagesInPlace, ShowAllStoresToReadersAtEachBarrier) {
  run<InPlace>(small, 13, [](auto& thread) {
    for (std::uint64_t i = 1; i <= 60; ++i) {
      if (thread.self() == 0) thread.store(0, i);
      thread.barrier();
      EXPECT_EQ(thread.load(0), i);
      thread.barrier();
    }
    thread.close();
  });
}

// A page that is written with its own contents is not changed, and gives way to one that is.
TYPED_TEST(Protocols, AStoreOfTheSameValueChangesNothing) {
  run<TypeParam>(small, 6, [](auto& thread) {
    for (std::uint64_t round = 1; round <= 3; ++round) {
      if (thread.self() == 0) thread.store(0, 0);
      thread.barrier();
      if (thread.self() == 1) thread.store(4, round);
      thread.barrier();
      EXPECT_EQ(thread.load(4), round) << "after a barrier";
      thread.barrier();
      if (thread.self() == 0) thread.store(0, 0);
      thread.begin_span(0);
      thread.store(8, thread.load(8) + 1, false);
      thread.end_span(0);
      thread.begin_span(1);
      thread.store(0, 0);
      thread.end_span(1);
      thread.barrier();
      EXPECT_EQ(thread.load(8), round * thread.shape().threads) << "after spans";
      thread.barrier();
    }
    thread.close();
  });
}

TYPED_TEST(Protocols, AReductionCombinesAllInOrder) {
  run<TypeParam>(small, 4, [](auto& thread) {
    for (std::uint64_t round = 1; round <= 3; ++round)
      EXPECT_EQ(thread.sum(round * (thread.self() + 1)), round * 6);
    double text = thread.self() + 1.0;
    thread.must(thread.protocol().reduce(text, [](double a, double b) { return a * 10 + b; }));
    EXPECT_EQ(text, 123.0);
    thread.close();
  });
}

// Pages that are brought besides a missed one push it out in no case: here all others are written.
TYPED_TEST(Protocols, AMissedPageStaysWhereOthersAreBroughtBesides) {
  Shape shape = small;
  shape.threads = 1;
  shape.pages = 32;
  shape.cached_pages = 4;
  shape.read_ahead = 4;
  run<TypeParam>(shape, 8, [](auto& thread) {
    for (const Variable v : {8, 10, 12}) thread.store(v, v);
    for (const Variable v : {3, 4, 5, 6}) EXPECT_EQ(thread.load(v), 0u);
    for (const Variable v : {8, 10, 12}) EXPECT_EQ(thread.load(v), v);
    thread.close();
  });
}

TYPED_TEST(Protocols, PagesThatFollowEachOtherMayBeBroughtAhead) {
  Shape shape = small;
  shape.threads = 1;
  shape.pages = 32;
  shape.cached_pages = 32;
  shape.read_ahead = 8;
  run<TypeParam>(shape, 9, [](auto& thread) {
    thread.load(0);
    EXPECT_EQ(thread.pages().lookup(1), nullptr);
    thread.load(1);
    EXPECT_EQ(thread.pages().lookup(2) != nullptr, !TypeParam::Protocol::polls);
    EXPECT_EQ(thread.pages().lookup(3), nullptr);
    for (Variable v = 2; v < 32; ++v) EXPECT_EQ(thread.load(v), 0u);
    thread.close();
  });
}

// In a full cache too, where all pages have been stored to.
TYPED_TEST(Protocols, PagesThatFollowEachOtherAreOpenedForStoresAhead) {
  Shape shape = small;
  shape.threads = 1;
  shape.pages = 64;
  shape.cached_pages = 16;
  shape.read_ahead = 4;
  run<TypeParam>(shape, 10, [](auto& thread) {
    int met = 0;
    for (Variable v = 0; v < 64; ++v) {
      met += thread.pages().lookup(v) == nullptr || !thread.pages().writable(v) ? 1 : 0;
      thread.store(v, v + 1);
    }
    if (!TypeParam::Protocol::polls) {
      EXPECT_EQ(met, 15) << "0, 1, 3, 6, 11, then each fifth";
    }
    for (Variable v = 0; v < 64; ++v) EXPECT_EQ(thread.load(v), v + 1);
    thread.close();
  });
}

// Upwards, downwards and at distances, through a cache that holds a quarter.
TYPED_TEST(Protocols, StreamsOfLoadsAndStoresAreRight) {
  Shape shape = small;
  shape.threads = 2;
  shape.pages = 64;
  shape.cached_pages = 16;
  shape.read_ahead = 4;
  run<TypeParam>(shape, 15, [](auto& thread) {
    constexpr Variable n = 64;
    const auto nth = [](std::uint64_t round, Variable v) {
      return round == 0 ? v : round == 1 ? n - 1 - v : v * (2 * round - 1) % n;
    };
    for (std::uint64_t round = 0; round < 5; ++round) {
      const std::uint64_t more = 1000 * round;
      if (thread.self() == round % 2)
        for (Variable v = 0; v < n; ++v) thread.store(nth(round, v), more + nth(round, v));
      thread.barrier();
      for (Variable v = 0; v < n; ++v)
        ASSERT_EQ(thread.load(nth(round, v)), more + nth(round, v)) << "round " << round;
      thread.barrier();
    }
    thread.close();
  });
}

TEST(PagesInPlace, OfAStreamOfStoresAreKeptFromTheSecondOn) {
  Shape shape = small;
  shape.pages = 64;
  shape.cached_pages = 16;
  shape.read_ahead = 4;
  run<InPlace>(shape, 16, [](auto& thread) {
    if (thread.self() == 0) {
      for (const Page page : {0, 1}) thread.store(page, 7);
      EXPECT_FALSE(thread.pages().lookup(0)->kept);
      for (const Page page : {1, 2}) EXPECT_TRUE(thread.pages().lookup(page)->kept);
      EXPECT_EQ(thread.pages().lookup(3), nullptr);
      for (Page page = 2; page < 64; ++page) thread.store(page, 7);
      EXPECT_FALSE(thread.pages().lookup(63)->twin);
    }
    thread.barrier();
    if (thread.self() == 0) {
      EXPECT_FALSE(is_met(thread, 63)) << "they are left to the program";
    }
    for (Page page = 0; page < 64; ++page) ASSERT_EQ(thread.load(page), 7U);
    thread.barrier();
    thread.close();
  });
}

TYPED_TEST(Protocols, OneThreadSeesItsOwnStoresThroughASmallCache) {
  Shape shape = small;
  shape.threads = 1;
  shape.pages = 16;
  run<TypeParam>(shape, 5, [](auto& thread) {
    for (std::uint64_t round = 1; round <= 3; ++round) {
      for (Variable v = 0; v < 256; ++v) thread.store(v, round * 1000 + v);
      for (Variable v = 0; v < 256; ++v) ASSERT_EQ(thread.load(v), round * 1000 + v);
    }
    thread.close();
  });
}

}  // namespace
}  // namespace tombolo::dsm::testing
