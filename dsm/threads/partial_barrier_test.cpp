// SPDX-License-Identifier: Apache-2.0
// Purpose: the steps of a barrier of some of the threads, in their order, and its rounds.
// Thread safety: -
#include "dsm/threads/partial_barrier.h"

#include <gtest/gtest.h>

#include "dsm/testing/noting_memory.h"

namespace tombolo::dsm {
namespace {

using testing::Calls;
using testing::NotingMemory;

constexpr WordIndex word = 6;

class PartialBarrierTest : public ::testing::Test {
 protected:
  std::uint64_t& arrivals() { return memory.words_of_program[word]; }

  NotingMemory memory;
  PartialBarrier of_three{memory, word, 3};
};

// DPB2
TEST_F(PartialBarrierTest, TellsBeforeItArrivesAndLearnsWhenAllHave) {
  memory.at("pause", [&](int) { ++arrivals(); });
  ASSERT_TRUE(of_three.wait().ok());
  EXPECT_EQ(memory.taken(), (Calls{"tell", "add 6", "pause", "pause", "enough", "learn"}));
}

TEST_F(PartialBarrierTest, TheLastOneWaitsForNone) {
  arrivals() = 2;
  ASSERT_TRUE(of_three.wait().ok());
  EXPECT_EQ(memory.taken(), (Calls{"tell", "add 6", "enough", "learn"}));
  EXPECT_EQ(arrivals(), 3U);
}

// DPB1
TEST_F(PartialBarrierTest, RoundsFollowEachOther) {
  for (const std::uint64_t before : {3, 4, 5, 6}) {
    arrivals() = before;
    memory.at("pause", [&](int) { ++arrivals(); });
    ASSERT_TRUE(of_three.wait().ok());
    EXPECT_EQ(arrivals(), before == 6 ? 9U : 6U) << "from " << before;
  }
}

TEST_F(PartialBarrierTest, OthersMayBeInTheNextRoundAlready) {
  memory.at("pause", [&](int) { arrivals() = 5; });
  ASSERT_TRUE(of_three.wait().ok());
  EXPECT_EQ(memory.taken(), (Calls{"tell", "add 6", "pause", "enough", "learn"}));
}

TEST_F(PartialBarrierTest, OfOneThreadWaitsForNone) {
  PartialBarrier alone(memory, word, 1);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(alone.wait().ok());
  EXPECT_EQ(memory.taken(),
            (Calls{"tell", "add 6", "enough", "learn", "tell", "add 6", "enough", "learn"}));
}

TEST_F(PartialBarrierTest, AnErrorEndsItWhereItWasMet) {
  const std::vector<std::pair<std::string, Calls>> all{{"tell", {"tell"}},
                                                       {"pause", {"tell", "add 6", "pause"}}};
  for (const auto& [call, calls] : all) {
    memory.fails = call;
    EXPECT_EQ(of_three.wait().message(), "no") << call;
    EXPECT_EQ(memory.taken(), calls);
  }
  memory.fails = "learn";
  EXPECT_EQ(PartialBarrier(memory, word + 1, 1).wait().message(), "no");
}

}  // namespace
}  // namespace tombolo::dsm
