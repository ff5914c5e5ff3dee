// SPDX-License-Identifier: Apache-2.0
// Purpose: the steps of a reduction of some of the threads, in their order, and its rounds.
// Thread safety: -
#include "dsm/threads/partial_reduction.h"

#include <gtest/gtest.h>

#include "dsm/testing/noting_memory.h"

namespace tombolo::dsm {
namespace {

using testing::Calls;
using testing::NotingMemory;

constexpr WordIndex first = 2;
constexpr WordIndex arrived = first;
constexpr WordIndex given = first + 1;
constexpr WordIndex left = first + 2;
constexpr WordIndex places = first + 3;

// Not the same in another order.
std::uint64_t in_order(std::uint64_t a, std::uint64_t b) { return a * 10 + b; }

// The memory is thread 1's, of 4.
class PartialReductionTest : public ::testing::Test {
 protected:
  std::uint64_t& word(WordIndex index) { return memory.words_of_program[index]; }
  // Another thread, at this place of the round.
  void give(std::uint64_t place, Thread thread, std::uint64_t value) {
    word(places + 2 * place) = thread;
    word(places + 2 * place + 1) = value;
    ++word(given);
  }

  NotingMemory memory;
  PartialReduction of_three{memory, first, 3};
};

// DPR1
TEST_F(PartialReductionTest, CombinesInTheOrderOfThreads) {
  memory.at("pause", [&](int time) { time == 1 ? give(1, 3, 7) : give(2, 0, 5); });
  std::uint64_t value = 6;
  ASSERT_TRUE(of_three.reduce(value, in_order).ok());
  EXPECT_EQ(value, 567U);
  EXPECT_EQ(memory.taken(), (Calls{"add 2", "enough", "store 5", "store 6", "add 3", "pause",
                                   "pause", "enough", "add 4"}));
}

// DPR2
TEST_F(PartialReductionTest, WaitsUntilTheRoundBeforeHasLeft) {
  word(arrived) = 3;
  word(given) = 3;
  word(left) = 2;
  memory.at("pause", [&](int time) {
    if (time == 1) {
      EXPECT_EQ(word(places + 1), 0U) << "the place is still read";
      word(left) = 3;
    } else {
      give(1, 0, 1), give(2, 2, 3);
    }
  });
  std::uint64_t value = 2;
  ASSERT_TRUE(of_three.reduce(value, in_order).ok());
  EXPECT_EQ(value, 123U);
  EXPECT_EQ(memory.taken(), (Calls{"add 2", "pause", "enough", "store 5", "store 6", "add 3",
                                   "pause", "enough", "add 4"}));
}

TEST_F(PartialReductionTest, OfOneThreadWaitsForNone) {
  PartialReduction alone(memory, first, 1);
  for (std::uint64_t i = 1; i <= 2; ++i) {
    std::uint64_t value = 5;
    ASSERT_TRUE(alone.reduce(value, in_order).ok());
    EXPECT_EQ(value, 5U);
    EXPECT_EQ(word(left), i);
  }
}

TEST_F(PartialReductionTest, AnErrorEndsIt) {
  memory.fails = "pause";
  std::uint64_t value = 1;
  EXPECT_EQ(of_three.reduce(value, in_order).message(), "no");
}

}  // namespace
}  // namespace tombolo::dsm
