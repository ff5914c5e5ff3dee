// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <complex>
#include <numeric>
#include <vector>

#include "windows/testing/processes.h"

namespace tombolo::windows::testing {
namespace {

class AccumulateTest : public OnEachMachine {};
INSTANTIATE_TEST_SUITE_P(On, AccumulateTest, ::testing::ValuesIn(test_machines()), name_of_machine);

// Bytes of target memory under one mutex.
constexpr std::uint64_t granularities[] = {0, 1, 8, 4096};

void run_with_each_granularity(const TestMachine& machine, World world, const Program& program) {
  for (const std::uint64_t granularity : granularities) {
    world.options.atomic_bytes = granularity;
    run(machine, world, program);
    if (::testing::Test::HasFailure()) return;
  }
}

// Every process adds one to the same element, from shared epochs, until the sum is known.
template <class T>
void add_ones_everywhere(Process& p, Element element, Offset at) {
  constexpr int rounds = 6;
  const T one{1};
  const T zero{0};
  p.put_bytes(p.self(), at, &zero, sizeof zero);
  p.fence();
  for (int i = 0; i < rounds; ++i)
    for (Home target = 0; target < p.processes(); ++target)
      p.accumulate(target, at, Op::sum, element, &one, 1);
  p.fence();
  T sum{};
  p.get_bytes(p.right(), at, &sum, sizeof sum);
  EXPECT_EQ(sum, static_cast<T>(static_cast<float>(rounds * static_cast<int>(p.processes()))))
      << name(element) << " at " << at;
  EXPECT_EQ(p.load_at<T>(p.self(), at), sum) << name(element) << " at " << at;
  p.fence();
}

TEST_P(AccumulateTest, AddsUpWhatAllProcessesAddToOneElement) {
  run_with_each_granularity(GetParam(), {.processes = 3}, [](Process& p) {
    p.fence();
    for (const Offset at : {std::uint64_t{64}, std::uint64_t{61}, std::uint64_t{4088}}) {
      add_ones_everywhere<std::int8_t>(p, Element::i8, at);
      add_ones_everywhere<std::int16_t>(p, Element::i16, at);
      add_ones_everywhere<std::uint32_t>(p, Element::u32, at);
      add_ones_everywhere<std::int64_t>(p, Element::i64, at);
      add_ones_everywhere<float>(p, Element::f32, at);
      add_ones_everywhere<double>(p, Element::f64, at);
      add_ones_everywhere<std::complex<float>>(p, Element::c32, at);
    }
    add_ones_everywhere<std::complex<double>>(p, Element::c64, 4090 - 16);
    add_ones_everywhere<long double>(p, Element::f80, 32);
  });
}

TEST_P(AccumulateTest, AddsUpAdjacentElementsOfSeveralSizesInOneLine) {
  run_with_each_granularity(GetParam(), {.processes = 4}, [](Process& p) {
    const std::int8_t i8 = 1;
    const std::int16_t i16 = 100;
    const std::int32_t i32 = 100'000;
    const double f64 = 0.5;
    p.fence();
    for (int i = 0; i < 20; ++i) {
      // Each adds to its own element, next to those of the others.
      if (p.self() == 0) p.accumulate(0, 0, Op::sum, Element::i8, &i8, 1);
      if (p.self() == 1) p.accumulate(0, 1, Op::sum, Element::i16, &i16, 1);
      if (p.self() == 2) p.accumulate(0, 3, Op::sum, Element::i32, &i32, 1);
      if (p.self() == 3) p.accumulate(0, 7, Op::sum, Element::f64, &f64, 1);
    }
    p.fence();
    if (p.self() != 0) return;
    EXPECT_EQ(p.load_at<std::int8_t>(0, 0), 20);
    EXPECT_EQ(p.load_at<std::int16_t>(0, 1), 2000);
    EXPECT_EQ(p.load_at<std::int32_t>(0, 3), 2'000'000);
    EXPECT_EQ(p.load_at<double>(0, 7), 10.0);
  });
}

// Three processes add their arrays, not aligned to the ranges and each from different ends.
void add_arrays(Process& p, std::size_t count) {
  std::vector<double> mine(count);
  for (std::size_t i = 0; i < count; ++i) mine[i] = static_cast<double>(i % 1000);
  p.fence();
  const std::size_t half = count / 2;
  const std::size_t first = p.self() == 0 ? half : 0;
  p.accumulate(1, 4 + first * 8, Op::sum, Element::f64, &mine[first], half);
  p.accumulate(1, 4 + (half - first) * 8, Op::sum, Element::f64, &mine[half - first], half);
  p.fence();
  std::vector<double> sum(count);
  p.get_bytes(1, 4, sum.data(), count * 8);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(sum[i], 3 * mine[i]) << i;
}

TEST_P(AccumulateTest, AddsUpLargeArraysAcrossTheRangesOfSeveralMutexes) {
  for (const std::uint64_t granularity : granularities) {
    // So many ranges that mutexes serve several.
    const std::size_t count = granularity == 1 || granularity == 8 ? 300 : 20'000;
    run(GetParam(),
        {.processes = 3, .bytes = count * 8 + 64, .options = {.atomic_bytes = granularity}},
        [&](Process& p) { add_arrays(p, count); });
    if (this->HasFailure()) return;
  }
}

TEST_P(AccumulateTest, FetchAndOpGivesEveryTicketOnce) {
  constexpr int tickets = 30;
  std::array<std::atomic<int>, 4 * tickets> taken;
  run_with_each_granularity(GetParam(), {.processes = 4}, [&](Process& p) {
    if (p.self() == 0) std::fill(taken.begin(), taken.end(), 0);
    p.barrier();
    p.lock_all();
    for (int i = 0; i < tickets; ++i) {
      const int ticket = p.fetch_add(2, 128, 1);
      ASSERT_LT(static_cast<std::size_t>(ticket), taken.size());
      ++taken[static_cast<std::size_t>(ticket)];
    }
    p.unlock_all();
    p.barrier();
    for (const auto& times : taken) EXPECT_EQ(times, 1);
    p.barrier();
  });
}

TEST_P(AccumulateTest, ALockBuiltOnCompareAndSwapExcludes) {
  run_with_each_granularity(GetParam(), {.processes = 3}, [](Process& p) {
    constexpr int rounds = 10;
    constexpr Offset word = 0;
    constexpr Offset counter = 8;  // in the same line
    p.lock_all();
    for (int i = 0; i < rounds; ++i) {
      while (p.compare_and_swap(0, word, 0, 1) != 0) p.pause();
      p.put(0, counter, p.get(0, counter) + 1);
      p.flush(0);
      EXPECT_EQ(p.compare_and_swap(0, word, 1, 0), 1);
    }
    p.barrier();
    EXPECT_EQ(p.get(0, counter), rounds * static_cast<int>(p.processes()));
    p.unlock_all();
  });
}

TEST_P(AccumulateTest, CompareAndSwapLeavesWhatDiffers) {
  run_with_each_granularity(GetParam(), {.processes = 2}, [](Process& p) {
    if (p.self() == 1) return;
    p.lock_exclusive(1);
    EXPECT_EQ(p.compare_and_swap(1, 40, 0, 7), 0);
    EXPECT_EQ(p.compare_and_swap(1, 40, 6, 8), 7);
    EXPECT_EQ(p.get(1, 40), 7);
    EXPECT_EQ(p.compare_and_swap(1, 40, 7, 9), 7);
    EXPECT_EQ(p.get(1, 40), 9);
    p.unlock(1);
  });
}

TEST_P(AccumulateTest, ReadsWithoutChangeAreAtomicPerElement) {
  using Value = std::complex<double>;
  run_with_each_granularity(GetParam(), {.processes = 3}, [](Process& p) {
    constexpr Offset at = 56;  // across two lines
    p.lock_all();
    for (int i = 0; i < 40; ++i) {
      if (p.self() == 0) {
        const Value both(i, i);
        p.accumulate(1, at, Op::replace, Element::c64, &both, 1);
      } else {
        Value seen;
        p.get_accumulate(1, at, Op::no_op, Element::c64, nullptr, &seen, 1);
        EXPECT_EQ(seen.real(), seen.imag());
      }
    }
    p.unlock_all();
  });
}

TEST_P(AccumulateTest, OperationsOfOneOriginHappenInOrder) {
  run_with_each_granularity(GetParam(), {.processes = 2}, [](Process& p) {
    p.lock_all();
    const Offset at = 8 * p.self();
    for (int i = 1; i <= 10; ++i) {
      const int two = 2;
      int seen = 0;
      p.accumulate(1, at, Op::replace, Element::i32, &i, 1);
      p.accumulate(1, at, Op::prod, Element::i32, &two, 1);
      p.get_accumulate(1, at, Op::max, Element::i32, &i, &seen, 1);
      EXPECT_EQ(seen, 2 * i);
      p.get_accumulate(1, at, Op::no_op, Element::i32, nullptr, &seen, 1);
      EXPECT_EQ(seen, 2 * i);
    }
    p.unlock_all();
  });
}

TEST_P(AccumulateTest, ResultsAreTheFormerElementsOfLargeArrays) {
  constexpr std::size_t count = 3000;
  const World world{.processes = 2, .bytes = count * 4 + 64};
  run_with_each_granularity(GetParam(), world, [&](Process& p) {
    if (p.self() == 1) return;
    std::vector<int> in(count), out(count);
    for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<int>(i);
    for (const Home target : {0u, 1u}) {
      p.lock_exclusive(target);
      p.get_accumulate(target, 20, Op::sum, Element::i32, in.data(), out.data(), count);
      EXPECT_EQ(std::count(out.begin(), out.end(), 0), static_cast<long>(count));
      p.get_accumulate(target, 20, Op::sum, Element::i32, in.data(), out.data(), count);
      EXPECT_EQ(out, in);
      p.get_accumulate(target, 20, Op::no_op, Element::i32, nullptr, out.data(), count);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], 2 * in[i]);
      p.unlock(target);
    }
  });
}

// Some in one range, one over the border of two, one in the next, none: each by whichever way.
TEST_P(AccumulateTest, RunsAreUpdatedEachInItsPlace) {
  const World world{.processes = 3, .bytes = std::size_t{3} * 65536};
  const std::vector<ElementRun> runs{{16, 1},    {24, 3},    {128, 0},    {192, 1},
                                     {65528, 2}, {65600, 1}, {131072, 2}, {16, 1}};
  run_with_each_granularity(GetParam(), world, [&](Process& p) {
    constexpr std::int64_t count = 11;
    std::vector<std::int64_t> in(count), before(count, -1);
    std::iota(in.begin(), in.end(), 1);
    p.lock_all();
    if (p.self() != 1) p.accumulate_runs(1, runs, Op::sum, Element::i64, in.data(), nullptr);
    p.unlock_all();
    p.barrier();
    if (p.self() != 0) return;
    p.lock_exclusive(1);
    p.accumulate_runs(1, runs, Op::no_op, Element::i64, nullptr, before.data());
    std::vector<std::int64_t> former(count, -1);
    p.accumulate_runs(1, runs, Op::sum, Element::i64, in.data(), former.data());
    p.unlock(1);
    std::vector<std::int64_t> expected(count);
    std::transform(in.begin(), in.end(), expected.begin(), [](auto v) { return 2 * v; });
    expected.front() = expected.back() = 2 * (1 + count);  // the same element
    EXPECT_EQ(before, expected);
    expected.back() += 1;
    EXPECT_EQ(former, expected);
  });
}

// As many as are changed together, one more, and more bytes than that.
template <class T>
void update_many_runs(Process& p, Element element, std::size_t runs, std::size_t in_each) {
  const std::size_t count = runs * in_each;
  std::vector<ElementRun> places;
  std::vector<T> in(count), former(count), seen(count);
  for (std::size_t i = 0; i < runs; ++i)  // in an order of their own
    places.push_back({(i * 17 % runs) * (in_each + 1) * sizeof(T), in_each});
  for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<T>(i + 1);
  if (p.self() == 0) {
    p.lock_exclusive(1);
    p.accumulate_runs(1, places, Op::replace, element, in.data(), nullptr);
    p.accumulate_runs(1, places, Op::sum, element, in.data(), former.data());
    p.accumulate_runs(1, places, Op::no_op, element, nullptr, seen.data());
    p.unlock(1);
    EXPECT_EQ(former, in) << runs << " runs of " << in_each;
    for (T& value : in) value += value;
    EXPECT_EQ(seen, in) << runs << " runs of " << in_each;
    T first{}, behind{};
    p.lock_shared(1);
    p.get_bytes(1, 0, &first, sizeof first);
    p.get_bytes(1, in_each * sizeof(T), &behind, sizeof behind);
    p.unlock(1);
    EXPECT_EQ(first, in.front());
    EXPECT_EQ(behind, T{}) << "between two runs";
  }
  p.barrier();
}

TEST_P(AccumulateTest, ManyRunsAreUpdatedEachInItsPlace) {
  const World world{.processes = 2, .bytes = std::size_t{16} << 10};
  for (const std::size_t runs : {2u, 63u, 64u, 65u, 100u, 256u, 257u})
    run_with_each_granularity(GetParam(), world, [runs](Process& p) {
      update_many_runs<double>(p, Element::f64, runs, 1);
      update_many_runs<std::int8_t>(p, Element::i8, std::min<std::size_t>(runs, 16), 2);
    });
  for (const std::size_t in_each : {4u, 5u})
    run_with_each_granularity(GetParam(), world, [in_each](Process& p) {
      update_many_runs<std::complex<double>>(p, Element::c64, 33 - in_each / 5, in_each);
    });
}

// All of a call's runs are under one mutex, or the elements under native atomics: either way no
// update is lost.
TEST_P(AccumulateTest, RunsAreAtomicForEachElement) {
  run_with_each_granularity(GetParam(), {.processes = 3}, [](Process& p) {
    constexpr int times = 50;
    const std::vector<ElementRun> runs{{8, 1}, {24, 2}, {64, 1}};
    const std::vector<int> ones(4, 1);
    p.lock_all();
    for (int i = 0; i < times; ++i)
      p.accumulate_runs(0, runs, Op::sum, Element::i32, ones.data(), nullptr);
    p.unlock_all();
    p.barrier();
    std::vector<int> seen(4);
    p.lock_shared(0);
    p.accumulate_runs(0, runs, Op::no_op, Element::i32, nullptr, seen.data());
    p.unlock(0);
    EXPECT_EQ(seen, std::vector<int>(4, 3 * times));
  });
}

// Several blocks, over two ranges of which none is whole.
TEST_P(AccumulateTest, ResultsOfSeveralBlocksAreInPlace) {
  constexpr std::size_t count = 9'011;
  const World world{.processes = 2, .bytes = count * 8 + 64};
  run_with_each_granularity(GetParam(), world, [&](Process& p) {
    if (p.self() == 1) return;
    std::vector<double> in(count), out(count);
    for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<double>(i + 1);
    p.lock_exclusive(1);
    for (int turn = 0; turn < 2; ++turn) {
      p.get_accumulate(1, 24, Op::sum, Element::f64, in.data(), out.data(), count);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], turn * in[i]) << i;
    }
    std::fill(out.begin(), out.end(), -1);
    p.get_accumulate(1, 24, Op::no_op, Element::f64, nullptr, out.data(), count);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], 2 * in[i]) << i;
    p.unlock(1);
  });
}

TEST_P(AccumulateTest, OwnersAndOthersUpdateTheSameElement) {
  run_with_each_granularity(GetParam(), {.processes = 2}, [](Process& p) {
    constexpr int rounds = 40;
    p.lock_all();
    for (int i = 0; i < rounds; ++i) p.fetch_add(0, 4, 1);
    p.barrier();
    EXPECT_EQ(p.fetch_add(0, 4, 0), 2 * rounds);
    p.barrier();
    p.sync();
    if (p.self() == 0) {
      EXPECT_EQ(p.load(4), 2 * rounds);
    }
    p.unlock_all();
  });
}

TEST_P(AccumulateTest, AnAccumulateToOneselfCountsFromOnesOwnPlainStore) {
  run_with_each_granularity(GetParam(), {.processes = 2}, [](Process& p) {
    const Assertions alone{.no_check = true};
    p.lock(Access::exclusive, p.self(), alone);
    p.store(512, 40);
    p.store(516, 7);
    EXPECT_EQ(p.fetch_add(p.self(), 512, 2), 40);
    EXPECT_EQ(p.load(516), 7);
    EXPECT_EQ(p.get(p.self(), 512), 42);
    p.unlock(p.self());
    p.sync();
    EXPECT_EQ(p.load(512), 42);
    EXPECT_EQ(p.load(516), 7);
  });
}

TEST_P(AccumulateTest, KeepsTheLowestOfAllWithItsIndex) {
  struct Pair {
    double value;
    int index;
  };
  run_with_each_granularity(GetParam(), {.processes = 4}, [](Process& p) {
    const Pair mine{10.0 - p.self(), static_cast<int>(p.self())};
    const Pair none{1e9, -1};
    p.fence();
    if (p.self() == 0) p.put_bytes(0, 16, &none, sizeof none);
    p.fence();
    p.accumulate(0, 16, Op::minloc, Element::double_int, &mine, 1);
    p.fence();
    Pair lowest{};
    p.get_bytes(0, 16, &lowest, sizeof lowest);
    EXPECT_EQ(lowest.value, 7.0);
    EXPECT_EQ(lowest.index, 3);
  });
}

TEST_P(AccumulateTest, LeavesPutsBesideItsElementsAlone) {
  // Elements and put bytes alternate in the same lines.
  run_with_each_granularity(GetParam(), {.processes = 2}, [](Process& p) {
    p.fence();
    for (int round = 1; round <= 10; ++round) {
      for (Offset at = 0; at < 256; at += 8) {
        if (p.self() == 0)
          p.fetch_add(0, at, 1);
        else
          p.put(0, at + 4, round);
      }
      p.fence();
      for (Offset at = 0; at < 256; at += 8) {
        ASSERT_EQ(p.get(0, at), round);
        ASSERT_EQ(p.get(0, at + 4), round);
      }
      p.fence();
    }
  });
}

}  // namespace
}  // namespace tombolo::windows::testing
