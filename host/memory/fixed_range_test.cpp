// SPDX-License-Identifier: Apache-2.0
// Purpose: ranges of addresses are taken where they are free only, and show shared memory.
#include "host/memory/fixed_range.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "host/memory/address_space.h"
#include "host/memory/page.h"
#include "host/segments/segment.h"

namespace tombolo::host {
namespace {

constexpr std::uint64_t address = std::uint64_t{0x2000} << 32;

bool is_mapped(std::uint64_t at) {
  std::vector<Mapping> mappings;
  EXPECT_TRUE(read_mappings(mappings).ok());
  for (const Mapping& mapping : mappings)
    if (mapping.range.low <= at && at < mapping.range.high) return true;
  return false;
}

TEST(FixedRange, IsWhereItWasAskedForAndGoesAway) {
  {
    FixedRange range;
    EXPECT_EQ(range.data(), nullptr);
    ASSERT_TRUE(FixedRange::reserve(address, 4 * page_bytes(), range).ok());
    EXPECT_EQ(reinterpret_cast<std::uint64_t>(range.data()), address);
    EXPECT_EQ(range.bytes(), 4 * page_bytes());
    EXPECT_TRUE(is_mapped(address + 3 * page_bytes()));
  }
  EXPECT_FALSE(is_mapped(address));
  EXPECT_FALSE(is_mapped(address + 3 * page_bytes()));
}

TEST(FixedRange, TakesNoAddressThatIsInUse) {
  FixedRange first;
  ASSERT_TRUE(FixedRange::reserve(address + page_bytes(), page_bytes(), first).ok());
  FixedRange second;
  const Status refused = FixedRange::reserve(address, 4 * page_bytes(), second);
  EXPECT_EQ(refused.code(), Code::unsupported) << refused.message();
  EXPECT_NE(refused.message().find("0x200000000000"), std::string::npos) << refused.message();
  EXPECT_EQ(second.data(), nullptr);
  EXPECT_TRUE(is_mapped(address + page_bytes())) << "the first one stays";
  EXPECT_FALSE(is_mapped(address)) << "nothing is left of the second one";
}

TEST(FixedRange, OfMoreThanAnAddressSpaceIsRefused) {
  FixedRange range;
  EXPECT_EQ(FixedRange::reserve(address, std::uint64_t{1} << 50, range).code(), Code::no_memory);
}

TEST(FixedRange, ShowsSharedMemory) {
  const std::uint64_t bytes = 3 * page_bytes();
  Segment segment;
  ASSERT_TRUE(Segment::create_anonymous(bytes, "test", segment).ok());
  FixedRange range;
  ASSERT_TRUE(FixedRange::reserve(address, 2 * bytes, range).ok());
  std::memset(segment.data(), 7, bytes);
  ASSERT_TRUE(range.show(segment.data(), bytes).ok());
  EXPECT_EQ(range.data()[bytes - 1], std::byte{7});
  range.data()[0] = std::byte{9};
  EXPECT_EQ(segment.data()[0], std::byte{9});
  segment = {};
  EXPECT_EQ(range.data()[0], std::byte{9}) << "the memory stays with its second mapping";
}

TEST(FixedRange, MovesWithItsAddresses) {
  FixedRange first;
  ASSERT_TRUE(FixedRange::reserve(address, page_bytes(), first).ok());
  FixedRange second(std::move(first));
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(second.data()), address);
  EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move): that is tested
  second = FixedRange();
  EXPECT_FALSE(is_mapped(address));
}

}  // namespace
}  // namespace tombolo::host
