// SPDX-License-Identifier: Apache-2.0
#include "base/rounding.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tombolo {
namespace {

TEST(RoundUp, IsTheLeastMultipleThatIsNotBelow) {
  EXPECT_EQ(round_up(0u, 64), 0u);
  EXPECT_EQ(round_up(1u, 64), 64u);
  EXPECT_EQ(round_up(64u, 64), 64u);
  EXPECT_EQ(round_up(65u, 64), 128u);
  EXPECT_EQ(round_up(std::uint64_t{1} << 40, 3u), 1099511627778u);
}

TEST(RoundUp, ThatDoesNotFitIsBelow) { EXPECT_LT(round_up(~std::uint64_t{0}, 4096), 4096u); }

}  // namespace
}  // namespace tombolo
