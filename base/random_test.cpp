// SPDX-License-Identifier: Apache-2.0
// Purpose: the sequences of a seed are the same on every host and in every version: recorded runs
// are repeated by their seeds.
#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

namespace tombolo {
namespace {

std::vector<std::uint64_t> first(Random random, std::size_t n) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < n; ++i) numbers.push_back(random.next());
  return numbers;
}

TEST(Random, IsSplitMix64) {
  // The published sequences of the generator for these two seeds.
  EXPECT_EQ(first(Random(0), 3), (std::vector<std::uint64_t>{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4,
                                                             0x06c45d188009454f}));
  EXPECT_EQ(first(Random(1234567), 3),
            (std::vector<std::uint64_t>{6457827717110365317u, 3203168211198807973u,
                                        9817491932198370423u}));
}

TEST(Random, StaysBelowItsBoundAndReachesAllOfIt) {
  Random random(1);
  for (const std::uint64_t bound : {1u, 2u, 3u, 7u}) {
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 200; ++i) seen.insert(random.below(bound));
    EXPECT_EQ(seen.size(), bound);
    EXPECT_EQ(*seen.rbegin(), bound - 1);
  }
}

TEST(Random, TakesTheUpperBitsOfEachNumber) {
  Random numbers(9);
  Random halves(9);
  Random small(9);
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t number = numbers.next();
    EXPECT_EQ(halves.below(std::uint64_t{1} << 63), number >> 1);
    EXPECT_EQ(small.below(16), number >> 60);
  }
}

TEST(Random, OneInSoManyIsTrueAboutThatOften) {
  Random random(5);
  int ones = 0;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_FALSE(random.one_in(0));
    EXPECT_TRUE(random.one_in(1));
    ones += random.one_in(10) ? 1 : 0;
  }
  EXPECT_GT(ones, 900);
  EXPECT_LT(ones, 1100);
}

TEST(Random, NeverDrawsNoNumber) {
  Random asked(3);
  asked.one_in(0);
  EXPECT_EQ(asked.next(), Random(3).next());
  asked.one_in(1);
  Random twice(3);
  twice.next();
  twice.next();
  EXPECT_EQ(asked.next(), twice.next()) << "each other question takes one";
}

TEST(Random, StreamsOfOneSeedDiffer) {
  std::set<std::uint64_t> starts;
  for (std::uint64_t seed = 0; seed < 8; ++seed)
    for (std::uint64_t index = 0; index < 64; ++index)
      starts.insert(Random::stream(seed, index).next());
  EXPECT_EQ(starts.size(), 8u * 64);
  EXPECT_EQ(Random::stream(7, 3).next(), Random::stream(7, 3).next());
  EXPECT_NE(Random::stream(7, 0).next(), Random(7).next());
}

}  // namespace
}  // namespace tombolo
