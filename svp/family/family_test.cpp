// SPDX-License-Identifier: Apache-2.0
// Purpose: tests create, sync, kill, break and failure of families, with one worker and with
// several.
// Thread safety: -
#include "svp/family/family.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "svp/api/include/tombolo/svp.hpp"

namespace tombolo::svp {
namespace {

class Families : public ::testing::TestWithParam<unsigned> {
 protected:
  // Runs the body as a thread of a family of these workers.
  template <class Body>
  Exit inside(Body&& body) {
    auto family = create(place_, std::forward<Body>(body));
    return family.sync();
  }
  LocalPlace place_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, Families, ::testing::Values(1u, 2u, 4u));

long fibonacci(long n) {
  if (n < 2) return n;
  long one = 0;
  auto family = create([&] { one = fibonacci(n - 1); });
  const long two = fibonacci(n - 2);
  EXPECT_TRUE(family.sync().done());
  return one + two;
}

TEST_P(Families, ComputeFibonacciNumbers) {
  long result = 0;
  EXPECT_TRUE(inside([&] { result = fibonacci(20); }).done());
  EXPECT_EQ(result, 6765);
}

TEST_P(Families, RunEachIndexOnce) {
  for (const Range range :
       {Range{.limit = 1000}, Range{.start = 7, .limit = 7},
        Range{.start = 99, .limit = -100, .step = -3}, Range{.start = -5, .limit = 1},
        Range{.limit = 3, .block = 1}, Range{.limit = 500, .block = 2}}) {
    const std::uint64_t count = range.count();
    std::vector<std::atomic<int>> runs(count);
    inside([&] {
      auto family = create(range, [&](Index i) {
        ++runs[static_cast<std::uint64_t>((i - range.start) / range.step)];
      });
      EXPECT_TRUE(family.sync().done());
    });
    EXPECT_TRUE(std::all_of(runs.begin(), runs.end(), [](const auto& n) { return n == 1; }))
        << range.start << " to " << range.limit << " by " << range.step;
  }
}

// That many threads at a time, however many workers ask; in runs of threads, too.
TEST(Blocks, AreTheMostThreadsThatRunAtOnce) {
  struct Together {
    std::atomic<std::uint64_t> running{0};
    std::atomic<std::uint64_t> most{0};

    // A thread: stays for a while, in which others would begin.
    void run() {
      std::uint64_t now = ++running;
      std::uint64_t before = most;
      while (before < now && !most.compare_exchange_weak(before, now)) {
      }
      for (int i = 0; i < 50; ++i) {
        std::this_thread::yield();
        checkpoint();  // gives a part of the range to a worker that asks
      }
      --running;
    }
  };
  LocalPlace place(4);
  for (const std::uint64_t block : {1u, 2u, 3u}) {
    Together nested, plain;
    auto in_family = create(place, [&] {
      auto family = create({.limit = 200, .block = block}, [&](Index) { nested.run(); });
      family.sync();
    });
    in_family.sync();
    auto* const all = &plain;
    auto in_runs = create(place, {.limit = 200, .block = block}, [all](Index) { all->run(); });
    in_runs.sync();
    EXPECT_LE(nested.most, block);
    EXPECT_LE(plain.most, block);
  }
}

TEST_P(Families, NestInRanges) {
  std::atomic<int> leaves{0};
  inside([&] {
    auto outer = create({.limit = 10}, [&](Index) {
      auto inner = create({.limit = 10}, [&](Index) {
        auto innermost = create({.limit = 10}, [&](Index) { ++leaves; });
        innermost.sync();
      });
      inner.sync();
    });
    outer.sync();
  });
  EXPECT_EQ(leaves, 1000);
}

TEST_P(Families, MayBeSyncedInAnyOrder) {
  int sum = 0;
  inside([&] {
    int a = 0;
    int b = 0;
    int c = 0;
    auto first = create([&] { a = 1; });
    auto second = create([&] { b = 10; });
    auto third = create([&] { c = 100; });
    first.sync();
    third.sync();
    second.sync();
    sum = a + b + c;
  });
  EXPECT_EQ(sum, 111);
}

TEST_P(Families, ManyAreSyncedInTheOrderOfTheirCreates) {
  constexpr int families = 20000;  // more than a worker offers at a time
  std::atomic<int> runs{0};
  inside([&] {
    const auto body = [&] { ++runs; };
    using One = decltype(create(body));
    std::vector<std::unique_ptr<One>> all;
    for (int i = 0; i < families; ++i) all.emplace_back(new One(create(body)));
    for (auto& family : all) family->sync();
  });
  EXPECT_EQ(runs, families);
}

TEST_P(Families, EndWithTheValueOfABreak) {
  inside([&] {
    auto family = create({.limit = unbounded}, [](Index i) {
      if (i == 12345) break_family(-i);
    });
    const Exit exit = family.sync();
    EXPECT_EQ(exit.reason, ExitReason::broken);
    EXPECT_EQ(exit.value, -12345);
  });
}

TEST_P(Families, AreBrokenByTheFirst) {
  inside([&] {
    std::atomic<int> after{0};
    auto family = create({.limit = 1000}, [&](Index i) {
      break_family(i);
      ++after;
    });
    const Exit exit = family.sync();
    EXPECT_EQ(exit.reason, ExitReason::broken);
    EXPECT_EQ(after, 0);
  });
}

TEST_P(Families, TellTheErrorOfAThread) {
  inside([&] {
    auto family = create({.limit = 100}, [](Index i) {
      if (i == 42) throw std::runtime_error("thread 42");
    });
    const Exit exit = family.sync();
    EXPECT_EQ(exit.reason, ExitReason::failed);
    EXPECT_THROW(exit.rethrow(), std::runtime_error);
    auto single = create([] { throw 7; });
    EXPECT_THROW(single.sync().rethrow(), int);
  });
}

TEST_P(Families, AreKilledWithAllDescendants) {
  struct Unwound {
    std::atomic<int>& count;
    ~Unwound() { ++count; }
  };
  std::atomic<int> begun{0};
  std::atomic<int> unwound{0};
  LocalPlace elsewhere(GetParam());
  const Exit exit = inside([&] {
    auto family = create(elsewhere, {.limit = 8}, [&](Index) {
      Unwound mark{unwound};
      ++begun;
      auto child = create({.limit = unbounded}, [](Index) {});
      child.sync();
      ADD_FAILURE() << "the sync of a killed thread returned";
    });
    while (begun == 0) std::this_thread::yield();
    family.kill();
    EXPECT_EQ(family.sync().reason, ExitReason::killed);
    EXPECT_EQ(begun, unwound);
  });
  EXPECT_TRUE(exit.done());
}

TEST_P(Families, KilledBeforeTheyBeginDoNotRun) {
  inside([&] {
    LocalPlace elsewhere(1);
    std::atomic<bool> hold{true};
    auto holder = create(elsewhere, [&] {
      while (hold) std::this_thread::yield();
    });
    auto family = create(elsewhere, [] { FAIL(); });
    family.kill();
    family.kill();
    hold = false;
    EXPECT_EQ(family.sync().reason, ExitReason::killed);
    EXPECT_TRUE(holder.sync().done());
  });
}

TEST_P(Families, KilledAfterTheirEndAreDone) {
  inside([&] {
    LocalPlace elsewhere(1);
    std::atomic<bool> ran{false};
    auto family = create(elsewhere, [&] { ran = true; });
    while (family.state.load() != Worker::Hand::done_value) std::this_thread::yield();
    family.kill();
    EXPECT_TRUE(family.sync().done());
  });
}

TEST_P(Families, ThatAnExceptionLeavesAreKilledAndJoined) {
  struct Alive {
    explicit Alive(std::atomic<int>& c) : count(c) { ++count; }
    ~Alive() { --count; }
    std::atomic<int>& count;
  };
  std::atomic<int> alive{0};
  int alive_at_the_end = -1;
  LocalPlace elsewhere(1);
  const Exit exit = inside([&] {
    try {
      auto family = create(elsewhere, [&] {
        const Alive one(alive);
        for (;;) checkpoint();
      });
      while (alive == 0) std::this_thread::yield();
      throw std::runtime_error("left");
    } catch (const std::runtime_error&) {
      alive_at_the_end = alive;
      throw;
    }
  });
  EXPECT_EQ(exit.reason, ExitReason::failed);
  EXPECT_EQ(alive_at_the_end, 0);
  // No alarm stays.
  inside([&] {
    auto family = create({.limit = 10}, [](Index) {});
    EXPECT_TRUE(family.sync().done());
    EXPECT_FALSE(Worker::here()->alarm().active());
  });
}

TEST_P(Families, OfThreadsThatAreNoWorkers) {
  std::vector<std::thread> threads;
  std::atomic<int> sum{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        auto family = create(place_, {.limit = 10}, [&](Index k) { sum += static_cast<int>(k); });
        EXPECT_TRUE(family.sync().done());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 4 * 100 * 45);
  auto family = create([&] { sum = 1; });  // at the default place
  EXPECT_TRUE(family.sync().done());
  EXPECT_EQ(sum, 1);
}

// Of the outermost range first: its threads are likely to be the most work (open_range.h).
TEST(Ranges, AreDividedFromWithinAThread) {
  LocalPlace place(2);
  std::atomic<bool> outer{false};
  bool inner_saw_outer = false;
  const auto in_second = [&](Index i) {
    if (i == 1) inner_saw_outer = outer;
    // The second thread of the outer range can begin on the other worker alone.
    while (!outer) create([] {}).sync();
  };
  auto family = create(place, {.limit = 2}, [&](Index i) {
    if (i == 1)
      outer = true;
    else
      create({.limit = 2}, in_second).sync();
  });
  EXPECT_TRUE(family.sync().done());
  EXPECT_TRUE(inner_saw_outer);
}

TEST_P(Families, CheckpointEndsALongLoop) {
  inside([&] {
    std::atomic<bool> looping{false};
    LocalPlace elsewhere(1);
    auto family = create(elsewhere, [&] {
      for (looping = true;;) checkpoint();
    });
    while (!looping) std::this_thread::yield();
    family.kill();
    EXPECT_EQ(family.sync().reason, ExitReason::killed);
  });
}

// Through the public names alone.
TEST_P(Families, HaveFreeFunctions) {
  inside([&] {
    auto family = create({.limit = unbounded}, [](Index) {});
    kill(family);
    EXPECT_EQ(sync(family).reason, ExitReason::killed);
  });
}

TEST(FamiliesDeathTest, AreSyncedOnce) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        LocalPlace place(1);
        auto family = create(place, [] {});
        family.sync();
        family.sync();
      },
      "sync: this family was synced before");
}

TEST(FamiliesDeathTest, AreSynced) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        LocalPlace place(1);
        auto family = create(place, [] {});
      },
      "a family was created and not synced");
}

TEST(FamiliesDeathTest, AreSyncedByTheirCreator) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        LocalPlace place(1);
        auto outer = create(place, [] {
          auto inner = create([] {});
          std::thread([&] { inner.sync(); }).join();
        });
        outer.sync();
      },
      "sync: by a thread that has not created the family");
}

TEST(FamiliesDeathTest, AreBrokenFromWithin) {
  EXPECT_DEATH(break_family(1), "break_family: outside of all families");
}

TEST(FamiliesDeathTest, HaveAStep) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH((void)create({.limit = 4, .step = 0}, [](Index) {}).sync(),
               "create: a family from 0 to 4 with step 0");
}

}  // namespace
}  // namespace tombolo::svp
