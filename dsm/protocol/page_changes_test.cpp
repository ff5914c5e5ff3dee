// SPDX-License-Identifier: Apache-2.0
// Purpose: updates have the bytes that differ, all of them, and no others.
#include "dsm/protocol/page_changes.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace tombolo::dsm {
namespace {

constexpr std::size_t page_bytes = 128;

PageBytes zeros() { return PageBytes(page_bytes); }
std::vector<Update> changes(const PageBytes& frame, std::size_t most = 16) {
  PageBytes diff;
  difference(frame, PageBytes(frame.size()), diff);
  return changes_of(frame, diff, most);
}

TEST(PageChanges, AChangeIsOfTheBytesThatDiffer) {
  PageBytes frame = zeros();
  frame[41] = std::byte{7};
  frame[43] = std::byte{9};
  const auto updates = changes(frame);
  ASSERT_EQ(updates.size(), 1U);
  EXPECT_EQ(updates[0].offset, 40U) << "from a multiple of 8 on";
  EXPECT_EQ(updates[0].bytes, 4U);
  EXPECT_EQ(updates[0].changed, 0b1010U);
  PageBytes other(page_bytes, std::byte{1});
  put_into(other, updates[0]);
  EXPECT_EQ(other[40], std::byte{1});
  EXPECT_EQ(other[41], std::byte{7});
  EXPECT_EQ(other[42], std::byte{1}) << "another thread's, between them";
  EXPECT_EQ(other[43], std::byte{9});
  EXPECT_EQ(other[44], std::byte{1});
}

TEST(PageChanges, AnUpdateHasNoMoreBytesThanFit) {
  PageBytes frame = zeros();
  frame[8] = frame[39] = frame[40] = std::byte{1};
  const auto updates = changes(frame);
  ASSERT_EQ(updates.size(), 2U);
  EXPECT_EQ(updates[0].offset, 8U);
  EXPECT_EQ(updates[0].bytes, Update::capacity);
  EXPECT_EQ(updates[1].offset, 40U);
  EXPECT_EQ(updates[1].bytes, 1U);
}

TEST(PageChanges, EndWithThePage) {
  PageBytes frame = zeros();
  frame[page_bytes - 1] = std::byte{1};
  const auto updates = changes(frame);
  ASSERT_EQ(updates.size(), 1U);
  EXPECT_EQ(updates[0].offset, page_bytes - 8);
  EXPECT_EQ(updates[0].bytes, 8U);
}

TEST(PageChanges, AreAllThereOrNone) {
  const PageBytes frame(page_bytes, std::byte{1});
  EXPECT_EQ(changes(frame, 4).size(), 4U);
  EXPECT_TRUE(changes(frame, 3).empty());
  EXPECT_TRUE(changes(zeros(), 4).empty());
}

void expect_the_same_page(std::size_t bytes, std::uint64_t most_changed) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random = Random::stream(seed, 0);
    PageBytes frame(bytes);
    for (std::uint64_t i = random.below(most_changed); i != 0; --i)
      frame[random.below(bytes)] = static_cast<std::byte>(random.below(256));
    PageBytes other(bytes);
    for (const Update& update : changes(frame)) put_into(other, update);
    ASSERT_EQ(other, frame) << "seed " << seed;
  }
}

TEST(PageChanges, MakeTheSamePage) { expect_the_same_page(page_bytes, 20); }
TEST(PageChanges, MakeTheSamePageWhereMostOfItIsAsBefore) { expect_the_same_page(1032, 3); }

TEST(PageChanges, AllBytesOfAnUpdateMayChange) {
  EXPECT_EQ(Update::all(1), 1U);
  EXPECT_EQ(Update::all(Update::capacity), ~std::uint32_t{0});
}

}  // namespace
}  // namespace tombolo::dsm
