// SPDX-License-Identifier: Apache-2.0
// Purpose: the steps of a condition variable in their order, and threads that come between them.
// Programs on several threads are those of dsm/memory/compute_server_test.cpp.
// Thread safety: -
#include "dsm/threads/condition.h"

#include <gtest/gtest.h>

#include "dsm/testing/noting_memory.h"

namespace tombolo::dsm {
namespace {

using testing::Calls;
using testing::NotingMemory;

constexpr WordIndex taken = 4;
constexpr WordIndex called = 5;
constexpr Lock lock = 3;

class ConditionTest : public ::testing::Test {
 protected:
  void set(std::uint64_t numbers_taken, std::uint64_t numbers_called) {
    memory.words_of_program[taken] = numbers_taken;
    memory.words_of_program[called] = numbers_called;
  }
  std::uint64_t word(WordIndex index) { return memory.words_of_program[index]; }

  NotingMemory memory;
  Condition condition{memory, taken};
};

// DCV2: a signal of the next holder of the lock is for it.
TEST_F(ConditionTest, AWaitTakesItsNumberWhileItHasTheLock) {
  memory.at("pause", [&](int) { condition.signal(); });
  ASSERT_TRUE(condition.wait(lock).ok());
  EXPECT_EQ(memory.taken(),
            (Calls{"add 4", "release 3", "pause", "swap 5", "enough", "acquire 3"}));
}

// DCV1: the numbers before its own are others'.
TEST_F(ConditionTest, AWaitEndsWithItsOwnNumber) {
  set(7, 5);
  memory.at("pause",
            [&](int time) { memory.words_of_program[called] = 5U + static_cast<unsigned>(time); });
  ASSERT_TRUE(condition.wait(lock).ok());
  EXPECT_EQ(word(taken), 8U);
  EXPECT_EQ(memory.taken(),
            (Calls{"add 4", "release 3", "pause", "pause", "pause", "enough", "acquire 3"}));
}

TEST_F(ConditionTest, AWaitEndsAtOnceWhereItsNumberWasCalledMeanwhile) {
  memory.at("release", [&](int) { condition.broadcast(); });
  ASSERT_TRUE(condition.wait(lock).ok());
  EXPECT_EQ(memory.taken(), (Calls{"add 4", "release 3", "swap 5", "enough", "acquire 3"}));
}

TEST_F(ConditionTest, AnErrorEndsAWaitWhereItWasMet) {
  const std::vector<std::pair<std::string, Calls>> all{{"release", {"add 4", "release 3"}},
                                                       {"pause", {"add 4", "release 3", "pause"}}};
  for (const auto& [call, calls] : all) {
    memory.fails = call;
    EXPECT_EQ(condition.wait(lock).message(), "no") << call;
    EXPECT_EQ(memory.taken(), calls);
  }
  memory.fails = "acquire";
  memory.at("release", [&](int) { condition.broadcast(); });
  EXPECT_EQ(condition.wait(lock).message(), "no");
}

TEST_F(ConditionTest, CallsOfNoneChangeNothing) {
  set(3, 3);
  condition.signal();
  condition.broadcast();
  EXPECT_EQ(word(called), 3U);
  EXPECT_EQ(memory.taken(), Calls{});
}

TEST_F(ConditionTest, ASignalCallsOneAndABroadcastAll) {
  set(7, 3);
  condition.signal();
  EXPECT_EQ(word(called), 4U);
  condition.broadcast();
  EXPECT_EQ(word(called), 7U);
  EXPECT_EQ(word(taken), 7U);
}

// Another thread calls between the look and the change: both calls count, as far as any waits.
TEST_F(ConditionTest, ASignalCountsBesideThatOfAnother) {
  const auto other = [&](int time) {
    if (time == 1) ++memory.words_of_program[called];
  };
  memory.at("swap", other);
  set(7, 3);
  condition.signal();
  EXPECT_EQ(word(called), 5U);
  EXPECT_EQ(memory.taken(), (Calls{"swap 5", "swap 5"}));
}

TEST_F(ConditionTest, ASignalIsOverWhereAnotherHasCalledTheLast) {
  memory.at("swap", [&](int) { ++memory.words_of_program[called]; });
  set(4, 3);
  condition.signal();
  EXPECT_EQ(word(called), 4U);
  EXPECT_EQ(memory.taken(), Calls{"swap 5"});
}

}  // namespace
}  // namespace tombolo::dsm
