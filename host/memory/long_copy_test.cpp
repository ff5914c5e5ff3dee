// SPDX-License-Identifier: Apache-2.0
// Purpose: long copies of all alignments and of sizes about a line and about the limit: each byte
// arrives, and none around it changes.
#include "host/memory/long_copy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tombolo::host {
namespace {

constexpr std::size_t margin = 128;

std::uint8_t pattern(std::size_t i) { return static_cast<std::uint8_t>(i * 131 + i / 251); }

template <class Copy>
void check(Copy&& copy, std::size_t to, std::size_t from, std::size_t bytes) {
  std::vector<std::uint8_t> source(from + bytes + margin);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = pattern(i);
  std::vector<std::uint8_t> target(to + bytes + margin, 0xee);
  copy(target.data() + to, source.data() + from, bytes);
  for (std::size_t i = 0; i < target.size(); ++i) {
    const bool inside = i >= to && i < to + bytes;
    ASSERT_EQ(target[i], inside ? pattern(i - to + from) : 0xee)
        << "byte " << i << " of " << bytes << " bytes from " << from << " to " << to;
  }
}

TEST(LongCopy, OfStringsBringsEachByteAtEachAlignment) {
  for (std::size_t to = 0; to < 66; ++to)
    for (const std::size_t from : {0U, 1U, 40U, 63U, 64U})
      for (const std::size_t bytes : {0U, 1U, 23U, 63U, 64U, 65U, 200U, 4096U})
        check(copy_as_string, to, from, bytes);
}

TEST(LongCopy, BringsEachByteOnBothSidesOfTheLimit) {
  for (const std::size_t to : {0U, 1U, 40U})
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{5}, long_copy_bytes - 1,
                                    long_copy_bytes, long_copy_bytes + 77})
      check(copy_long, to, 3, bytes);
}

TEST(LongCopy, IsNoStringWhereTheTargetIsLessThanALineAfterTheSource) {
  static char memory[3 * 4096];
  const char* const from = memory + 4096;
  for (const int page : {-4096, 0, 4096}) {
    EXPECT_TRUE(far_enough(from + page, from));
    EXPECT_FALSE(far_enough(from + page + 1, from));
    EXPECT_FALSE(far_enough(from + page + 63, from));
    EXPECT_TRUE(far_enough(from + page + 64, from));
    EXPECT_TRUE(far_enough(from + page - 1, from));
    EXPECT_TRUE(far_enough(from + page - 63, from));
  }
}

}  // namespace
}  // namespace tombolo::host
