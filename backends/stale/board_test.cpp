// SPDX-License-Identifier: Apache-2.0
// The board by itself; backends/stale/stale_test.cpp has the facts that cores note on it.
#include "backends/stale/board.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace tombolo::stale {
namespace {

using machine::Loss;

// A process that ends may end the job: not before another has told.
TEST(Board, AFactThatIsBeingToldIsWaitedFor) {
  alignas(8) static std::array<std::byte, 1 << 14> shared{};
  ASSERT_LE(Board::bytes(), sizeof shared);
  Board first(shared.data());
  Board second(shared.data());
  first.add({.loss = Loss::lost_update, .bytes = 3}, 1);
  ASSERT_EQ(first.take(std::chrono::milliseconds(0)).size(), 1u);
  std::atomic<bool> told = false;
  std::thread teller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    told = true;
    first.told();
  });
  EXPECT_TRUE(second.take(std::chrono::seconds(50)).empty());
  EXPECT_TRUE(told);
  teller.join();
  // The teller has died.
  first.add({.loss = Loss::dropped_write, .bytes = 4}, 2);
  ASSERT_EQ(first.take(std::chrono::milliseconds(0)).size(), 1u);
  const auto facts = second.take(std::chrono::milliseconds(1));
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].bytes, 4u);
}

TEST(Board, ANoteIsNoMistake) {
  Board board(nullptr);
  board.add({.loss = Loss::late, .bytes = 3}, 1);
  EXPECT_FALSE(board.has_mistakes());
  board.add({.loss = Loss::broken_no_put}, 1);
  EXPECT_TRUE(board.has_mistakes());
  EXPECT_EQ(board.take({}).size(), 2u);
  board.told();
  EXPECT_TRUE(board.has_mistakes()) << "told or not";
}

}  // namespace
}  // namespace tombolo::stale
