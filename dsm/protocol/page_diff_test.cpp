// SPDX-License-Identifier: Apache-2.0
// Purpose: the difference of pages of any length has each byte that differs, and no other.
#include "dsm/protocol/page_diff.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace tombolo::dsm {
namespace {

PageBytes drawn(std::uint64_t seed, std::size_t bytes) {
  Random random(seed);
  PageBytes page(bytes);
  for (std::byte& byte : page) byte = static_cast<std::byte>(random.below(256));
  return page;
}

TEST(PageDiff, OfEqualPagesIsZero) {
  for (const std::size_t bytes : {0u, 1u, 31u, 32u, 33u, 128u, 4096u}) {
    const PageBytes page = drawn(1, bytes);
    PageBytes diff(7, std::byte{9});
    EXPECT_FALSE(difference(page, page, diff)) << bytes;
    EXPECT_EQ(diff, PageBytes(bytes)) << bytes;
    EXPECT_TRUE(all_zero(diff)) << bytes;
  }
}

TEST(PageDiff, FindsEachByte) {
  for (const std::size_t bytes : {1u, 31u, 32u, 33u, 70u, 128u}) {
    const PageBytes twin = drawn(2, bytes);
    for (std::size_t at = 0; at < bytes; ++at) {
      PageBytes frame = twin;
      frame[at] ^= std::byte{0x80};
      PageBytes diff;
      EXPECT_TRUE(difference(frame, twin, diff)) << at << " of " << bytes;
      PageBytes expected(bytes);
      expected[at] = std::byte{0x80};
      EXPECT_EQ(diff, expected) << at << " of " << bytes;
      EXPECT_FALSE(all_zero(diff)) << at << " of " << bytes;
    }
  }
}

TEST(PageDiff, AppliedToTheTwinGivesThePage) {
  const PageBytes frame = drawn(3, 4096);
  PageBytes page = drawn(4, 4096);
  PageBytes diff;
  ASSERT_TRUE(difference(frame, page, diff));
  for (std::size_t i = 0; i < page.size(); ++i) page[i] ^= diff[i];
  EXPECT_EQ(page, frame);
}

}  // namespace
}  // namespace tombolo::dsm
