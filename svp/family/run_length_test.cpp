// SPDX-License-Identifier: Apache-2.0
// Purpose: runs are long where threads are short, and of one where they are long; whatever they
// take, a kill is heard after a few.
#include "svp/family/run_length.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "svp/api/include/tombolo/svp.hpp"

namespace tombolo::svp {
namespace {

using namespace std::chrono_literals;

// That the test moves.
struct HandClock {
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<HandClock, duration>;
  static time_point now() { return at; }
  static inline time_point at{};
};
using Lengths = RunLength<HandClock>;

// Runs so many times, with threads that take so long. The length of the next run.
std::uint32_t after_runs(Lengths& length, int runs, std::chrono::nanoseconds each) {
  length.begin();
  for (int i = 0; i < runs; ++i) {
    const std::uint32_t threads = length.next();
    HandClock::at += threads * each;
    length.ended(threads);
  }
  return length.next();
}

TEST(RunLengths, GrowUntilARunIsWorthAClock) {
  Lengths length;
  EXPECT_EQ(length.next(), 1u);
  EXPECT_EQ(after_runs(length, 8, 1ns), 256u);
  EXPECT_EQ(after_runs(length, 4, 1ns), 2048u);
  EXPECT_EQ(after_runs(length, 100, 1ns), 2048u);
  EXPECT_EQ(after_runs(length, 4, 0ns), Lengths::longest);
  EXPECT_EQ(after_runs(length, 1, 0ns), Lengths::longest);
}

// A stride of them is short, and a run has some of these.
TEST(RunLengths, HaveShorterStridesWhereThreadsAreLong) {
  Lengths length;
  const auto expect = [&](std::chrono::nanoseconds each, std::uint32_t stride, std::uint32_t run) {
    EXPECT_EQ(after_runs(length, 100, each), run) << each.count();
    EXPECT_EQ(length.stride(), stride) << each.count();
  };
  expect(100ns, 4, 32);
  expect(300ns, 2, 8);
  expect(600ns, 1, 4);
  expect(150ns, 4, 16);
  expect(1000ns, 1, 2);
  expect(1001ns, 1, 1);
  expect(1ns, 32, 2048);
}

TEST(RunLengths, FallToOneAtOnce) {
  Lengths length;
  ASSERT_EQ(after_runs(length, 100, 1ns), 2048u);
  EXPECT_EQ(after_runs(length, 1, 31ns), 2048u);
  EXPECT_EQ(after_runs(length, 1, 32ns), 1u);
  // One stride of them has run when something was wanted.
  ASSERT_EQ(after_runs(length, 100, 1ns), 2048u);
  length.begin();
  HandClock::at += 1001ns;
  length.ended(Lengths::longest_stride);
  EXPECT_EQ(length.next(), 1u);
  // Likewise of shorter strides.
  ASSERT_EQ(after_runs(length, 100, 100ns), 32u);
  length.begin();
  HandClock::at += 2000ns;
  length.ended(8);
  EXPECT_EQ(length.next(), 32u);
  HandClock::at += 2001ns;
  length.ended(8);
  EXPECT_EQ(length.next(), 1u);
}

TEST(RunLengths, AreMeasuredFromTheirBegin) {
  Lengths length;
  ASSERT_EQ(after_runs(length, 100, 1ns), 2048u);
  HandClock::at += 1h;
  EXPECT_EQ(after_runs(length, 1, 1ns), 2048u);
}

class InRuns : public ::testing::TestWithParam<Range> {};
INSTANTIATE_TEST_SUITE_P(
    Ranges, InRuns,
    ::testing::Values(Range{.limit = 127}, Range{.limit = 128}, Range{.limit = 5000},
                      Range{.start = -3000, .limit = 3000, .step = 7},
                      Range{.start = 3000, .limit = -3000, .step = -1, .block = 1},
                      Range{.start = 10, .limit = 40000, .step = 3, .block = 2}));

TEST_P(InRuns, EachIndexHasItsThreadOnce) {
  const Range range = GetParam();
  const Index low = std::min(range.start, range.limit);
  std::vector<int> counts(static_cast<std::size_t>(std::abs(range.limit - range.start)) + 1);
  int* const at = counts.data() - low;
  LocalPlace place(3);
  auto family = create(place, range, [at](Index i) { ++at[i]; });
  EXPECT_TRUE(family.sync().done());
  EXPECT_EQ(static_cast<std::uint64_t>(std::accumulate(counts.begin(), counts.end(), 0)),
            range.count());
  for (std::uint64_t n = 0; n < range.count(); ++n) ASSERT_EQ(at[range.index(n)], 1) << n;
}

TEST(RunsOfThreads, ABreakAndAFailureEndThem) {
  LocalPlace place(2);
  auto broken = create(place, {.limit = 100000}, [](Index i) {
    if (i == 70000) break_family(i);
  });
  const Exit end = broken.sync();
  EXPECT_EQ(end.reason, ExitReason::broken);
  EXPECT_EQ(end.value, 70000);
  auto failed = create(place, {.limit = 100000}, [](Index i) {
    if (i == 7) throw std::runtime_error("by chance");
  });
  EXPECT_EQ(failed.sync().reason, ExitReason::failed);
}

// Workers, and the most threads of a family that run at once. Where these are fewer, an idle worker
// asks all the time, and may have none of them.
class Kills : public ::testing::TestWithParam<std::pair<unsigned, std::uint64_t>> {};
INSTANTIATE_TEST_SUITE_P(Workers, Kills, ::testing::Values(std::pair(1u, 0u), std::pair(2u, 1u)));

// Threads that were short are long from `at` on: a look comes after a stride of them.
TEST_P(Kills, WaitForAFewThreadsOfARun) {
  struct Threads {
    Index at = 0;
    std::atomic<bool> reached{false};
    std::atomic<bool> killed{false};
    std::atomic<std::uint64_t> afterwards{0};
  };
  const auto [workers, block] = GetParam();
  LocalPlace place(workers);
  const auto expect_few = [&, block = block](Index at, Index limit) {
    Threads threads{.at = at};
    auto* const all = &threads;
    auto family = create(place, {.limit = limit, .block = block}, [all](Index i) {
      if (i < all->at) return;
      if (i > all->at) ++all->afterwards;
      all->reached = true;
      while (!all->killed) std::this_thread::yield();
    });
    while (!threads.reached) std::this_thread::yield();
    family.kill();
    threads.killed = true;
    EXPECT_EQ(family.sync().reason, ExitReason::killed);
    EXPECT_LT(threads.afterwards, RunLength<>::longest_stride) << at << " of " << limit;
  };
  for (Index at = 50000; at < 54000; at += 250) expect_few(at, 1000000);
  // In the last run: its last strides, and the threads behind them that are none.
  for (const Index limit : {50014, 50022, 50030})
    for (Index left = RunLength<>::longest_stride; left < 2 * Index{RunLength<>::longest_stride};
         left += 3)
      expect_few(limit - left - 1, limit);
}

// Another worker is idle, and may not have threads of this family: it does not end their runs.
TEST(RunsOfThreads, AreNotCutShortByAWorkerThatMayNotHaveThem) {
  struct Counted : OpenRange {
    Counted() : OpenRange(&Counted::count, &Counted::may_divide, 0, 2) {}
    static bool count(OpenRange& range, Worker&) {
      ++static_cast<Counted&>(range).looks;
      return false;
    }
    static bool may_divide(const OpenRange&) { return false; }
    std::uint64_t looks = 0;
  };
  constexpr Index threads = 1 << 20;
  Counted range;
  auto* const counted = &range;
  LocalPlace place(2);
  auto family = create(place, {.limit = threads, .block = 1}, [counted](Index i) {
    if (i != 0 && i != threads - 1) return;
    Worker& worker = *Worker::here();
    if (i != 0) return worker.close(*counted);
    const auto end = std::chrono::steady_clock::now() + 20s;
    while ((worker.pool().idle == 0 || !worker.wanted()) && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    worker.open(*counted);
  });
  EXPECT_TRUE(family.sync().done());
  EXPECT_GT(range.looks, 0u);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
  // Where threads are so short that their runs are long: not with sanitizers.
  EXPECT_LT(range.looks, threads / RunLength<>::longest_stride / 4);
#endif
}

// A run takes all threads that are left, some of which are long: a worker that becomes idle gets
// some of them.
TEST(RunsOfThreads, AnIdleWorkerHasSomeOfTheLastRun) {
  constexpr Index last_short = 2100;
  std::atomic<bool> other_is_busy{false};
  std::atomic<bool> is_last{false};
  std::atomic<bool> divided{false};
  const auto end = std::chrono::steady_clock::now() + 20s;
  const auto until = [end](auto&& holds) {
    while (!holds() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  };
  const auto run_thread = [&](Index i, unsigned first_worker) {
    Worker& here = *Worker::here();
    if (here.number() != first_worker) divided = true;
    if (i < last_short || divided) return;
    is_last = true;
    if (i == last_short) until([&] { return here.wanted() && here.pool().idle != 0; });
    if (i > last_short + 2 * Index{RunLength<>::longest_stride})
      until([&] { return divided.load(); });
  };
  LocalPlace place(2);
  auto both = create(place, {.limit = 2}, [&](Index i) {
    if (i != 0) {
      other_is_busy = true;
      return until([&] { return is_last.load(); });
    }
    until([&] {
      checkpoint();
      return other_is_busy.load();
    });
    const unsigned worker = Worker::here()->number();
    const auto* const run = &run_thread;
    create({.limit = 4000}, [run, worker](Index thread) { (*run)(thread, worker); }).sync();
  });
  EXPECT_TRUE(both.sync().done());
  EXPECT_TRUE(divided);
}

// One worker has short threads until a run of them is long. Then the other one is idle, and the
// threads are long: it gets some of them after a stride, though their number at once is limited.
TEST(RunsOfThreads, AnIdleWorkerWaitsForAStrideOfThem) {
  struct Threads {
    std::atomic<Index> first_of[2] = {-1, -1};
    std::atomic<bool> are_long{false};
    std::atomic<bool> divided{false};
    std::atomic<bool> given_up{false};

    // The worker of the lower half.
    void run_lower(Index i, const std::atomic<Index>& border) {
      if (i != 0) {
        if (i >= border) divided = true;
        return;
      }
      while (border < 0) {
        checkpoint();
        std::this_thread::yield();
      }
      while (!are_long) std::this_thread::yield();
    }
    void run_upper(Index i, Worker& here) {
      if (i < 0 || divided || given_up) return;
      are_long = true;
      if (i == 0)
        while (!here.wanted() || here.pool().idle == 0) std::this_thread::yield();
      if (i < RunLength<>::longest_stride) return;
      const auto end = std::chrono::steady_clock::now() + 20s;
      while (!divided && !given_up) {
        given_up = std::chrono::steady_clock::now() > end;
        std::this_thread::yield();
      }
    }
  } threads;
  auto* const all = &threads;
  LocalPlace place(2);
  auto family = create(place, {.limit = 1 << 18, .block = 2}, [all](Index i) {
    Worker& here = *Worker::here();
    std::atomic<Index>& first = all->first_of[here.number()];
    if (first < 0) first = i;
    if (first == 0)
      all->run_lower(i, all->first_of[1 - here.number()]);
    else
      all->run_upper(i - first - (1 << 15), here);
  });
  EXPECT_TRUE(family.sync().done());
  EXPECT_TRUE(threads.divided);
  EXPECT_FALSE(threads.given_up);
}

// The other worker has ended the part that it was given: it may have another one.
TEST(PartsOfAFamily, AreGivenAwayAgain) {
  std::atomic<Index> lowest{64};
  std::atomic<int> parts{0};
  LocalPlace place(2);
  const auto end = std::chrono::steady_clock::now() + 20s;
  auto family = create(place, {.limit = 64, .block = 2}, [&](Index i) {
    if (i >= 2) {
      if (i < lowest) ++parts;
      lowest = std::min(i, lowest.load());
      return;
    }
    while (parts <= i && std::chrono::steady_clock::now() < end) {
      checkpoint();
      std::this_thread::yield();
    }
    EXPECT_GT(parts, i) << "the threads behind this one were given to no other worker";
  });
  EXPECT_TRUE(family.sync().done());
}

// The upper half is another worker's, and not at its end: the third one, idle again, gets a part of
// the lower half. Then the first worker waits for both, and the family checks at its end that its
// parts were counted.
TEST(PartsOfAFamily, AreGivenAwayBesideOthers) {
  constexpr unsigned workers = 3;
  constexpr Index border = 32;
  std::atomic<unsigned> first_worker{workers};
  std::atomic<Index> given{0};  // the first thread of that part
  std::atomic<Index> lower{0};  // threads that the first worker has run
  const auto end = std::chrono::steady_clock::now() + 20s;
  const auto until = [end](auto&& holds) {
    while (!holds() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  };
  const auto lower_has_ended = [&] { return given != 0 && lower >= given; };
  LocalPlace place(workers);
  // One part more: the second worker may have given one to the third, and does not look at its end.
  auto family = create(place, {.limit = 2 * border, .block = workers + 1}, [&](Index i) {
    const unsigned here = Worker::here()->number();
    if (i > border) return;
    if (i == border) return until(lower_has_ended);
    if (i == 0) {
      first_worker = here;
      until([&] {
        checkpoint();
        return given != 0;
      });
    } else if (here != first_worker) {
      Index none = 0;
      if (given.compare_exchange_strong(none, i)) until(lower_has_ended);
      return;
    }
    ++lower;
  });
  EXPECT_TRUE(family.sync().done());
  EXPECT_NE(given, 0);
}

// The lower of two parts is another worker's, and the upper one is in no worker's hands: the first
// worker goes on with that, on its stack, and does not wait for it.
TEST(PartsOfAFamily, ThatNoOtherWorkerHasGoOnHereBehindThoseThatOneHas) {
  std::atomic<bool> other_is_busy{false};
  std::atomic<bool> other_may_end{false};
  std::atomic<bool> lower_has_begun{false};
  std::atomic<bool> upper_has_run{false};
  const void* stacks[] = {nullptr, nullptr};
  const auto end = std::chrono::steady_clock::now() + 20s;
  const auto until = [end](auto&& holds) {
    while (!holds() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  };
  const auto run_thread = [&](Index i) {
    Worker& here = *Worker::here();
    if (i == 1) {
      lower_has_begun = true;
      return until([&] { return upper_has_run.load(); });
    }
    stacks[i / 2] = &here.program_thread();
    if (i == 2) {
      upper_has_run = true;
      return;
    }
    auto oldest = create([] {});
    // As if three were idle. They would take the oldest first: it is taken back, and the lower part
    // comes to its slot.
    here.pool().idle += 3;
    EXPECT_FALSE(here.attend());
    here.pool().idle -= 3;
    EXPECT_TRUE(oldest.sync().done());
    other_may_end = true;
    until([&] {
      checkpoint();
      return lower_has_begun.load();
    });
  };
  LocalPlace place(2);
  auto both = create(place, {.limit = 2}, [&](Index i) {
    if (i != 0) {
      other_is_busy = true;
      return until([&] { return other_may_end.load(); });
    }
    until([&] {
      checkpoint();
      return other_is_busy.load();
    });
    EXPECT_TRUE(create({.limit = 3}, [&](Index thread) { run_thread(thread); }).sync().done());
  });
  EXPECT_TRUE(both.sync().done());
  EXPECT_TRUE(lower_has_begun);
  EXPECT_TRUE(upper_has_run);
  EXPECT_EQ(stacks[0], stacks[1]);
}

TEST(RunsOfThreads, AKillEndsAnEndlessFamilyOfShortThreads) {
  LocalPlace place(2);
  std::atomic<std::uint64_t> threads{0};
  auto* const count = &threads;
  auto family = create(place, {.limit = unbounded},
                       [count](Index) { count->fetch_add(1, std::memory_order_relaxed); });
  while (threads.load() < 10000) std::this_thread::yield();
  family.kill();
  EXPECT_EQ(family.sync().reason, ExitReason::killed);
}

}  // namespace
}  // namespace tombolo::svp
