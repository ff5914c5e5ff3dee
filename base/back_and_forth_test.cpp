// SPDX-License-Identifier: Apache-2.0
#include "base/back_and_forth.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/copy.h"

namespace tombolo {
namespace {

std::vector<std::size_t> visited(std::size_t elements, std::size_t per_block, bool from_the_end) {
  std::vector<std::size_t> order;
  walk(elements, per_block, from_the_end, [&](std::size_t first, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) order.push_back(first + i);
  });
  return order;
}

TEST(BackAndForth, VisitsEachElementOnceInOrderWithinABlock) {
  EXPECT_EQ(visited(7, 3, false), (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(visited(7, 3, true), (std::vector<std::size_t>{6, 3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(visited(6, 3, true), (std::vector<std::size_t>{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(visited(2, 3, true), (std::vector<std::size_t>{0, 1}));
  EXPECT_TRUE(visited(0, 3, true).empty());
}

TEST(BackAndForth, EachArrayAndThreadTurnsByItself) {
  // Pages of two groups: which they are is of no concern, so the second is searched for.
  alignas(4096) static std::byte pages[64][4096];
  const bool first = walk_from_the_end(pages[0]);
  EXPECT_NE(walk_from_the_end(pages[0]), first);
  std::size_t other = 1;
  for (;; ++other) {
    ASSERT_LT(other, 64u);
    const bool before = walk_from_the_end(pages[0]);
    walk_from_the_end(pages[other]);
    if (walk_from_the_end(pages[0]) != before) break;
  }
  for (int i = 0; i < 3; ++i) {
    const bool mine = walk_from_the_end(pages[0]);
    const bool its = walk_from_the_end(pages[other]);
    EXPECT_NE(walk_from_the_end(pages[0]), mine);
    EXPECT_NE(walk_from_the_end(pages[other]), its);
  }
  const bool mine = walk_from_the_end(pages[0]);
  std::thread([] { walk_from_the_end(pages[0]); }).join();
  EXPECT_NE(walk_from_the_end(pages[0]), mine);
}

TEST(CopyBytes, CopiesEverySizeAndNothingElse) {
  std::vector<unsigned char> from(walk_from_bytes + 3 * walk_block_bytes);
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<unsigned char>(i * 7 + (i >> 8) + 1);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{8}, std::size_t{9},
        walk_from_bytes, walk_from_bytes + 1, 3 * walk_block_bytes, from.size() - 1}) {
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<unsigned char> to(from.size() + 1, 0);
      copy_bytes(to.data() + 1, from.data(), bytes);
      EXPECT_EQ(to[0], 0) << bytes;
      EXPECT_TRUE(std::equal(to.begin() + 1, to.begin() + 1 + static_cast<std::ptrdiff_t>(bytes),
                             from.begin()))
          << bytes;
      for (std::size_t i = bytes + 1; i < to.size(); ++i) ASSERT_EQ(to[i], 0) << bytes;
    }
  }
}

}  // namespace
}  // namespace tombolo
