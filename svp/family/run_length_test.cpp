// SPDX-License-Identifier: Apache-2.0
// Purpose: runs are long where threads are short, and of one where they are long.
#include "svp/family/run_length.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "svp/svp.h"

namespace tombolo::svp {
namespace {

using std::chrono::milliseconds;

TEST(RunLengths, GrowToALimitAndFallToOne) {
  RunLength length;
  EXPECT_EQ(length.next(), 1u);
  length.ended();
  std::uint32_t most = 1;
  for (int i = 0; i < 10000 && most < RunLength::longest; ++i) {
    most = std::max(most, length.next());
    length.ended();
  }
  EXPECT_EQ(most, RunLength::longest);
  std::uint32_t now = most;
  for (int i = 0; i < 100 && now > 1; ++i) {
    now = length.next();
    std::this_thread::sleep_for(milliseconds(2));
    length.ended();
  }
  EXPECT_EQ(now, 1u);
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
