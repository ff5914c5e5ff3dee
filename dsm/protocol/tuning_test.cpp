// SPDX-License-Identifier: Apache-2.0
// Purpose: each tuning saves the costs that it is there for: faults, pages that are got, or
// differences that are sent, counted with all of them and without that one. That programs are right
// without each is for random_program_test.cpp and litmus/programs/random_memory_test.cpp.
// Thread safety: -
#include "dsm/protocol/tuning.h"

#include <gtest/gtest.h>

#include <mutex>
#include <utility>

#include "dsm/testing/tunings.h"
#include "dsm/testing/turns.h"

namespace tombolo::dsm::testing {
namespace {

// All threads of a program count here.
struct Counts {
  int loads_met = 0;
  int stores_met = 0;
  int pages_got = 0;
  int differences_sent = 0;
};
std::mutex counting;
Counts counts;
void count(int Counts::*what) {
  const std::lock_guard guard(counting);
  ++(counts.*what);
}

class CountingTransport : public CoreTransport<coherent::Core> {
 public:
  using CoreTransport::CoreTransport;
  Status get(Page page, std::span<std::byte> out) {
    count(&Counts::pages_got);
    return CoreTransport::get(page, out);
  }
  Status get_exposed(Thread thread, std::uint32_t slot, std::span<std::byte> out) {
    count(&Counts::pages_got);
    return CoreTransport::get_exposed(thread, slot, out);
  }
  Status accumulate_xor(Page page, std::span<const std::byte> in) {
    count(&Counts::differences_sent);
    return CoreTransport::accumulate_xor(page, in);
  }
};

template <Transport T, PageStore S>
class CountingMisses : public Release<T, S> {
 public:
  using Release<T, S>::Release;
  Status read_miss(Page page) {
    count(&Counts::loads_met);
    return Release<T, S>::read_miss(page);
  }
  Status write_miss(Page page) {
    count(&Counts::stores_met);
    return Release<T, S>::write_miss(page);
  }
};

template <class S>
struct CountedCase {
  using Machine = coherent::Core;
  using Thread = ProgramThread<CountingTransport, S, CountingMisses>;
};
using Copied = CountedCase<PrivatePages>;
using InPlace = CountedCase<ExposedPages>;

// The counts of a program that runs with these tunings.
template <class Case, class Body>
Counts counted(const Shape& shape, const Tuning& tuning, Body&& body) {
  Shape tuned = shape;
  tuned.tuning = tuning;
  counts = Counts();
  run_in_turns<Case>(tuned, body);
  return counts;
}
template <class Case, class Body>
std::pair<Counts, Counts> counted_with_and_without(bool Tuning::*off, const Shape& shape,
                                                   Body&& body) {
  return {counted<Case>(shape, {}, body), counted<Case>(shape, without(off), body)};
}

constexpr int rounds = 12;

// Thread 0 in even turns, thread 1 in odd ones.
template <class Turns, class Body>
void take_all(Turns& turns, Body&& body) {
  for (int turn = 0; turn < rounds; ++turn)
    turns.take(turn, static_cast<Thread>(turn % 2), [&] { body(turn); });
}

TEST(Tunings, AreAllOnUnlessOneIsSwitchedOff) {
  for (bool Tuning::*const off : tunings) {
    const Tuning tuning = without(off);
    for (bool Tuning::*const each : tunings) EXPECT_EQ(tuning.*each, each != off);
    EXPECT_TRUE(Tuning().*off);
  }
}

TEST(Tunings, ReadAheadSavesLoadsThatAreMet) {
  Shape shape = two_threads;
  shape.pages = shape.cached_pages = 32;
  shape.read_ahead = 8;
  const auto [with, not_with] =
      counted_with_and_without<Copied>(&Tuning::read_ahead, shape, [](auto& thread, auto& turns) {
        turns.take(0, 0, [&] {
          for (Variable v = 0; v < 32; ++v) thread.load(v);
        });
      });
  EXPECT_LT(with.loads_met, 10);
  EXPECT_EQ(not_with.loads_met, 32);
  EXPECT_EQ(with.pages_got, not_with.pages_got);
}

TEST(Tunings, OwnPagesAreNotSentAgain) {
  const auto [with, not_with] = counted_with_and_without<InPlace>(
      &Tuning::own_pages, two_threads, [](auto& thread, auto& turns) {
        turns.take(0, 0, [&] {
          for (std::uint64_t i = 1; i <= rounds; ++i) store_and_send(thread, 0, i);
        });
      });
  EXPECT_EQ(with.differences_sent, 1);
  EXPECT_EQ(not_with.differences_sent, rounds);
}

TEST(Tunings, ClearedPagesAreNotSentByTheirNextWriter) {
  const auto [with, not_with] = counted_with_and_without<InPlace>(
      &Tuning::cleared_pages, two_threads, [](auto& thread, auto& turns) {
        turns.take(0, 0, [&] { store_and_send(thread, 0, 0); });
        turns.take(1, 1, [&] { store_and_send(thread, 0, 5); });
      });
  EXPECT_EQ(with.differences_sent, 0);
  EXPECT_EQ(not_with.differences_sent, 1);
}

// Thread 0 stores to a page that it keeps long after it has told that thread 1 had got it.
TEST(Tunings, ALongerLeaveSavesStoresThatAreMet) {
  const auto [with, not_with] = counted_with_and_without<InPlace>(
      &Tuning::longer_leave, two_threads, [](auto& thread, auto& turns) {
        turns.take(0, 0, [&] { keep_by_stores(thread); });
        for (int round = 0; round < 2 * rounds; ++round) {
          turns.take(2 * round + 1, 1, [&] {
            thread.learn();
            thread.load(0);
          });
          turns.take(2 * round + 2, 0, [&] {
            for (int i = 0; i < 4; ++i) thread.tell();
            thread.store(0, 9);
          });
        }
      });
  EXPECT_LT(with.stores_met, 10);
  EXPECT_GT(not_with.stores_met, rounds);
}

TEST(Tunings, SmallChangesSavePagesThatAreGot) {
  const auto [with, not_with] = counted_with_and_without<Copied>(
      &Tuning::small_changes, two_threads, [](auto& thread, auto& turns) {
        take_all(turns, [&](int turn) {
          thread.begin_span(0);
          thread.store(0, thread.load(0) + 1);
          EXPECT_EQ(thread.load(0), static_cast<std::uint64_t>(turn) + 1);
          thread.end_span(0);
        });
      });
  EXPECT_EQ(with.pages_got, 2);
  EXPECT_EQ(not_with.pages_got, rounds);
}

TEST(Tunings, OpenPagesSaveStoresThatAreMet) {
  const auto [with, not_with] = counted_with_and_without<Copied>(
      &Tuning::open_pages, two_threads, [](auto& thread, auto& turns) {
        turns.take(0, 0, [&] {
          for (std::uint64_t i = 1; i <= rounds; ++i) count_alone(thread, 0, i);
        });
      });
  EXPECT_EQ(with.stores_met, 1);
  EXPECT_EQ(not_with.stores_met, rounds);
}

TEST(Tunings, MoreOpenPagesSaveStoresOfTheContentsThatAreThere) {
  const auto [with, not_with] = counted_with_and_without<Copied>(
      &Tuning::more_open_pages, two_threads, [](auto& thread, auto& turns) {
        turns.take(0, 0, [&] {
          for (int i = 0; i < rounds; ++i) count_alone(thread, 0, 0);
        });
      });
  EXPECT_EQ(with.stores_met, 1);
  EXPECT_EQ(not_with.stores_met, rounds);
}

// Thread 0 keeps five pages that thread 1 gets: they are no pages of small changes.
TEST(Tunings, MoreOpenPagesAreOpenBesideKeptOnes) {
  Shape shape = two_threads;
  shape.pages = shape.cached_pages = 8;
  const auto [with, not_with] = counted_with_and_without<InPlace>(
      &Tuning::more_open_pages, shape, [](auto& thread, auto& turns) {
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
          EXPECT_EQ(thread.pages().writable(5), thread.shape().tuning.more_open_pages);
          thread.store(5, 2);
        });
      });
  EXPECT_EQ(with.stores_met + 1, not_with.stores_met);
}

// Thread 2 reads the notice of the second change before the one of the first.
TEST(Tunings, SortedNoticesSavePagesThatAreGot) {
  Shape shape = two_threads;
  shape.threads = 3;
  shape.locks = 4;
  const auto [with, not_with] = counted_with_and_without<Copied>(
      &Tuning::sorted_notices, shape, [](auto& thread, auto& turns) {
        turns.take(0, 2, [&] { thread.load(0); });
        turns.take(1, 0, [&] {
          thread.begin_span(0);
          thread.store(0, 1);
          thread.evict(0);
        });
        turns.take(2, 1, [&] { count_alone(thread, 4, 2); });
        turns.take(3, 0, [&] { thread.end_span(0); });
        turns.take(4, 2, [&] {
          thread.learn();
          EXPECT_EQ(thread.load(0), 1U);
          EXPECT_EQ(thread.load(4), 2U);
        });
      });
  EXPECT_EQ(with.pages_got, 3) << "by each thread once";
  EXPECT_EQ(not_with.pages_got, 4);
}

TEST(Tunings, ChangesThatAreHandedOverSavePagesThatAreGot) {
  const auto [with, not_with] = counted_with_and_without<Copied>(
      &Tuning::handed_over_changes, two_threads, [](auto& thread, auto& turns) {
        take_all(turns, [&](int turn) {
          thread.hand_over(0);
          EXPECT_EQ(thread.load(0), static_cast<std::uint64_t>(turn));
          for (const Variable v : {0, 4})
            thread.store(v, static_cast<std::uint64_t>(turn) + 1, false);
          thread.hand_over(0);
        });
      });
  EXPECT_EQ(with.pages_got, 2);
  EXPECT_EQ(not_with.pages_got, rounds);
}

}  // namespace
}  // namespace tombolo::dsm::testing
