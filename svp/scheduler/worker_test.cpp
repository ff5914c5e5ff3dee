// SPDX-License-Identifier: Apache-2.0
// Purpose: tests that workers need no more stacks than they may, and that many blocked threads end.
// Thread safety: -
#include "svp/scheduler/worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "svp/scheduler/pool.h"
#include "svp/svp.h"

namespace tombolo::svp {
namespace {

// Frames are several times as large under the sanitizers, which inline less.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int deep_levels = 100;
#else
constexpr int deep_levels = 1000;
#endif
// That many a worker may park for syncs (WK3), and one to go on with.
constexpr std::size_t most_stacks = 65;

class Workers : public ::testing::TestWithParam<unsigned> {
 protected:
  template <class Body>
  Exit inside(Body&& body) {
    auto family = create(place_, std::forward<Body>(body));
    return family.sync();
  }
  static Pool& pool() { return Worker::here()->pool(); }
  LocalPlace place_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Number, Workers, ::testing::Values(1u, 2u, 4u, 8u));

void tree(int levels) {
  if (levels == 0) return;
  auto family = create({.limit = 4}, [&](Index) { tree(levels - 1); });
  family.sync();
}

TEST_P(Workers, NeedFewStacksForFamiliesThatOnlyFork) {
  inside([] {
    for (int round = 0; round < 5; ++round) tree(8);
    EXPECT_LE(pool().stacks(), most_stacks * pool().size());
    const bool one = pool().size() == 1;
    EXPECT_TRUE(!one || pool().stacks() == 0) << pool().stacks();
  });
}

TEST_P(Workers, DeepFamiliesLieOnTheCreatorsStack) {
  inside([] {
    std::atomic<int> depth{0};
    const auto deeper = [&](auto& self, int levels) -> void {
      ++depth;
      if (levels == 0) return;
      auto family = create([&] { self(self, levels - 1); });
      family.sync();
    };
    deeper(deeper, deep_levels);
    EXPECT_EQ(depth, deep_levels + 1);
    EXPECT_LE(pool().stacks(), most_stacks * pool().size());
  });
}

// Each on a stack of its own; a kill ends them all.
TEST_P(Workers, EndManyBlockedThreads) {
  constexpr std::uint64_t threads = 1000;
  inside([&] {
    Global<int> never;
    auto family = create({.limit = 10}, [&](Index) {
      const auto wait = [&] { never.read(); };
      using One = decltype(create(wait));
      std::vector<std::unique_ptr<One>> all;
      for (std::uint64_t i = 0; i < threads / 10; ++i) all.emplace_back(new One(create(wait)));
      for (auto& one : all) one->sync();
    });
    auto killer = create([&] {
      while (Pool::blocked_threads() < threads / 10) {
        auto nothing = create([] {});
        nothing.sync();
        std::this_thread::yield();
        if (GetParam() == 1) break;
      }
      family.kill();
    });
    family.sync();
    killer.sync();
  });
  EXPECT_EQ(Pool::blocked_threads(), 0u);
}

TEST_P(Workers, SleepAndAreWoken) {
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::atomic<int> runs{0};
    inside([&] {
      auto family = create({.limit = 64}, [&](Index) { ++runs; });
      family.sync();
    });
    EXPECT_EQ(runs, 64);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
[[gnu::noinline]] int overflow(int depth) {
  volatile char frame[512] = {static_cast<char>(depth)};
  return depth < 0 ? frame[0] : overflow(depth + 1) + frame[511];
}

TEST(WorkersDeathTest, NameAStackThatOverflows) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        LocalPlace place(1);
        auto outer = create(place, [] {
          Global<int> value;
          auto deep = create([&] { value.write(overflow(0)); });
          value.read();  // so that the other thread gets a stack of its own
          deep.sync();
        });
        outer.sync();
      },
      "SIGSEGV.: the stack of a family's thread has overflowed");
}
#endif

}  // namespace
}  // namespace tombolo::svp
