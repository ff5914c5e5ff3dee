// SPDX-License-Identifier: Apache-2.0
// Purpose: the answers that every exchange gives (runtime/collective/exchange.h), as a test of one.
// Thread safety: to be called by all of its processes, each in a thread of its own.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "runtime/collective/exchange.h"

namespace tombolo::runtime::testing {

template <Exchange X>
void expect_the_same_answers(X& exchange, int size) {
  EXPECT_EQ(exchange.size(), size);
  std::vector<std::uint32_t> all(static_cast<std::size_t>(size) + 1, 7);
  const auto mine = static_cast<std::uint32_t>(1000 + exchange.rank());
  EXPECT_TRUE(exchange.gather(&mine, all.data(), sizeof mine).ok());
  for (int rank = 0; rank < size; ++rank)
    EXPECT_EQ(all[static_cast<std::size_t>(rank)], 1000u + static_cast<std::uint32_t>(rank));
  EXPECT_EQ(all.back(), 7u) << "nothing behind the last";
  for (int root = 0; root < size; ++root) {
    std::uint64_t value = exchange.rank() == root ? 50 + static_cast<std::uint64_t>(root) : 0;
    EXPECT_TRUE(exchange.broadcast(&value, sizeof value, root).ok());
    EXPECT_EQ(value, 50u + static_cast<std::uint64_t>(root)) << "at " << exchange.rank();
  }
  EXPECT_TRUE(exchange.all(true));
  for (int no = 0; no < size; ++no) EXPECT_FALSE(exchange.all(exchange.rank() != no));
  EXPECT_TRUE(exchange.all(true)) << "a question that was answered with no is over";
}

}  // namespace tombolo::runtime::testing
