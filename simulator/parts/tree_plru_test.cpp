// SPDX-License-Identifier: Apache-2.0
// The tree against the known table for 4 ways, and its invariants for others.
#include "simulator/parts/tree_plru.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace tombolo::simulator {
namespace {

// Bits of a set: B0 the root, B1 over ways 0 and 1, B2 over ways 2 and 3, each pointing to the half
// used longer ago.
constexpr std::uint64_t state_of(int b0, int b1, int b2) {
  return static_cast<std::uint64_t>(b0) << 1 | static_cast<std::uint64_t>(b1) << 2 |
         static_cast<std::uint64_t>(b2) << 3;
}

TEST(TreePlru, ReplacesByTheTableForFourWays) {
  const TreePlru plru(4);
  for (const int other : {0, 1}) {
    EXPECT_EQ(plru.victim(state_of(0, 0, other)), 0u);
    EXPECT_EQ(plru.victim(state_of(0, 1, other)), 1u);
    EXPECT_EQ(plru.victim(state_of(1, other, 0)), 2u);
    EXPECT_EQ(plru.victim(state_of(1, other, 1)), 3u);
  }
}

TEST(TreePlru, UpdatesByTheTableForFourWays) {
  const TreePlru plru(4);
  for (const int b0 : {0, 1}) {
    for (const int b1 : {0, 1}) {
      for (const int b2 : {0, 1}) {
        const std::uint64_t state = state_of(b0, b1, b2);
        EXPECT_EQ(plru.touched(state, 0), state_of(1, 1, b2));
        EXPECT_EQ(plru.touched(state, 1), state_of(1, 0, b2));
        EXPECT_EQ(plru.touched(state, 2), state_of(0, b1, 1));
        EXPECT_EQ(plru.touched(state, 3), state_of(0, b1, 0));
      }
    }
  }
}

TEST(TreePlru, IsNotExactLru) {
  const TreePlru plru(4);
  std::uint64_t state = 0;
  for (const std::uint32_t way : {0u, 1u, 2u, 3u, 0u}) state = plru.touched(state, way);
  EXPECT_EQ(plru.victim(state), 2u) << "exact LRU would take way 1";
}

TEST(TreePlru, L1TheLastWayIsNeverTheVictimAndL2VictimsVisitAllWays) {
  Random random(9);
  for (std::uint32_t ways : {1u, 2u, 4u, 8u, 16u, 64u}) {
    const TreePlru plru(ways);
    std::uint64_t state = 0;
    for (int i = 0; i < 1000; ++i) {
      const auto way = static_cast<std::uint32_t>(random.below(ways));
      state = plru.touched(state, way);
      ASSERT_TRUE(ways == 1 || plru.victim(state) != way);
    }
    std::set<std::uint32_t> seen;
    for (std::uint32_t i = 0; i < ways; ++i) {
      seen.insert(plru.victim(state));
      state = plru.touched(state, plru.victim(state));
    }
    EXPECT_EQ(seen.size(), ways);
  }
}

}  // namespace
}  // namespace tombolo::simulator
