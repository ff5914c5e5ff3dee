// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/progress_pace.h"

#include <gtest/gtest.h>

namespace tombolo::mpi {
namespace {

TEST(ProgressPace, LooksAgainAfterAsManyCallsAsTheAttemptTookNanosecondsWithinBounds) {
  ProgressPace pace;
  EXPECT_EQ(pace.attempted(1000, 1040), ProgressPace::fewest_calls);
  EXPECT_EQ(pace.attempted(2000, 2300), 300);
  EXPECT_EQ(pace.attempted(3000, 5000), ProgressPace::most_calls);
}

TEST(ProgressPace, AnAttemptThatGaveTheProcessorAwayIsFollowedByThreeTimesAsMuchRest) {
  ProgressPace pace;
  EXPECT_TRUE(pace.due(0));
  constexpr std::int64_t slice = 15'000'000;
  pace.attempted(slice, 2 * slice);
  EXPECT_FALSE(pace.due(2 * slice + 1));
  EXPECT_FALSE(pace.due(5 * slice - 1));
  EXPECT_TRUE(pace.due(5 * slice));
}

TEST(ProgressPace, AQuickAttemptIsDueAgainAtTheNextLook) {
  ProgressPace pace;
  constexpr std::int64_t call_ns = 5;  // no call is quicker
  const std::int64_t calls = pace.attempted(1000, 1040);
  EXPECT_TRUE(pace.due(1040 + calls * call_ns));
}

}  // namespace
}  // namespace tombolo::mpi
