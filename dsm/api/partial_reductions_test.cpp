// SPDX-License-Identifier: Apache-2.0
// Purpose: reductions of some of the threads, while all of them run at once.
// Thread safety: -
#include <gtest/gtest.h>

#include <atomic>

#include "dsm/testing/mapped_threads.h"
#include "dsm/threads/partial_reduction.h"

namespace tombolo::dsm {
namespace {

// Three of four threads in each round, whichever come.
TEST(PartialReductions, OfThreadsThatRunAtOnceLoseNoValue) {
  constexpr std::uint64_t rounds = 400;
  testing::MappedThreads threads(
      {.threads = 4, .locks = 1, .words = PartialReduction::words_needed(3)});
  std::atomic<std::uint64_t> sum{0};
  std::atomic<std::uint64_t> tickets{0};
  threads.run([&](ProgramMemory& memory) {
    PartialReduction three(memory, 0, 3);
    while (tickets++ < 3 * rounds) {
      std::uint64_t value = 1;
      ASSERT_TRUE(three.reduce(value, [](auto a, auto b) { return a + b; }).ok());
      EXPECT_EQ(value, 3U);
      sum += value;
    }
  });
  EXPECT_EQ(sum, 3 * rounds * 3);
}

}  // namespace
}  // namespace tombolo::dsm
