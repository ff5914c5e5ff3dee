// SPDX-License-Identifier: Apache-2.0
// Purpose: recorded bytes come back once, none that was not recorded, and no more than fit.
#include "dsm/protocol/recorded_ranges.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>
#include <utility>
#include <vector>

namespace tombolo::dsm {
namespace {

using Parts = std::vector<std::pair<std::size_t, std::size_t>>;
Parts parts_of(const RecordedRanges& ranges, Page page) {
  Parts parts;
  for (const RecordedRange& range : ranges.of(page)) {
    EXPECT_EQ(range.page, page);
    parts.emplace_back(range.offset, range.bytes);
  }
  return parts;
}

TEST(RecordedRanges, AreJoinedWhereTheyMeetAndNowhereElse) {
  RecordedRanges ranges;
  ranges.add({.page = 1, .offset = 8, .bytes = 8});
  ranges.add({.page = 1, .offset = 16, .bytes = 4});  // behind the last one
  ranges.add({.page = 1, .offset = 0, .bytes = 8});   // before it
  ranges.add({.page = 1, .offset = 21, .bytes = 1});  // a gap of one byte
  ranges.add({.page = 2, .offset = 22, .bytes = 1});  // another page
  ranges.add({.page = 1, .offset = 4, .bytes = 2});   // inside
  ranges.add({.page = 1, .offset = 50, .bytes = 0});
  EXPECT_EQ(parts_of(ranges, 1), (Parts{{0, 20}, {21, 1}}));
  EXPECT_EQ(parts_of(ranges, 2), (Parts{{22, 1}}));
  EXPECT_EQ(parts_of(ranges, 3), Parts{});
  ranges.forget(1);
  EXPECT_EQ(parts_of(ranges, 1), Parts{});
  EXPECT_EQ(parts_of(ranges, 2), (Parts{{22, 1}}));
  ranges.clear();
  EXPECT_EQ(parts_of(ranges, 2), Parts{});
}

TEST(RecordedRanges, AreTheBytesThatWereAdded) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    RecordedRanges ranges;
    std::bitset<300> added;
    for (int i = 0; i < 20; ++i) {
      const std::size_t offset = random() % 200, bytes = random() % 20;
      ranges.add({.page = 0, .offset = offset, .bytes = bytes});
      for (std::size_t at = offset; at < offset + bytes; ++at) added.set(at);
    }
    std::bitset<300> found;
    for (const auto& [offset, bytes] : parts_of(ranges, 0)) {
      for (std::size_t at = offset; at < offset + bytes; ++at) {
        EXPECT_FALSE(found[at]) << "twice, in round " << round;
        found.set(at);
      }
    }
    EXPECT_EQ(found, added) << "round " << round;
  }
}

TEST(RecordedRanges, AreAsManyAsFit) {
  RecordedRanges ranges;
  for (std::size_t i = 0; i < RecordedRanges::most + 10; ++i)
    ranges.add({.page = 0, .offset = 2 * i, .bytes = 1});
  EXPECT_EQ(ranges.of(0).size(), RecordedRanges::most);
}

}  // namespace
}  // namespace tombolo::dsm
